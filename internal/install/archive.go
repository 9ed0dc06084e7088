package install

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/fetch"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Limits of a wheel. The table's largest has 132 members and unpacks to four times its size.
const (
	maxMembers   = 10_000
	maxDirectory = 1 << 20
	maxRatio     = 20       // of the whole archive,
	ratioSlack   = 16 << 20 // beyond these bytes
	maxUnpacked  = 8 << 30
)

type fileRecord struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	MTime  int64  `json:"mtime_ns"`
	Inode  uint64 `json:"inode"`
}

// extract judges the whole archive before it writes.
func extract(ctx context.Context, wheel string, patterns []string, tree *os.Root) ([]fileRecord, error) {
	file, err := os.Open(wheel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	source := &rationed{file: file, left: maxDirectory}
	archive, err := zip.NewReader(source, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: not a readable zip file: %w", ErrArchive, listed.Short(err))
	}
	source.left = -1
	if err := judge(archive.File, info.Size(), patterns); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, listed.Short(err))
	}
	members, err := match(archive.File, patterns)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	var records []fileRecord
	for _, member := range members {
		record, err := unpack(ctx, member, tree)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", member.Name, err)
		}
		records = append(records, record)
	}
	return records, nil
}

type rationed struct {
	file io.ReaderAt
	left int64
}

func (r *rationed) ReadAt(p []byte, offset int64) (int, error) {
	if r.left >= 0 {
		if int64(len(p)) > r.left {
			return 0, fmt.Errorf("its list of members is longer than %d bytes", maxDirectory)
		}
		r.left -= int64(len(p))
	}
	return r.file.ReadAt(p, offset)
}

func judge(members []*zip.File, packed int64, patterns []string) error {
	if len(members) > maxMembers {
		return fmt.Errorf("%d members, the limit is %d", len(members), maxMembers)
	}
	most := min(packed*maxRatio+ratioSlack, maxUnpacked)
	files := make(map[string]string, len(members))
	folders := make(map[string]string)
	var unpacked int64
	for _, m := range members {
		name := strings.TrimSuffix(m.Name, "/")
		if err := checkName(name); err != nil {
			return err
		}
		folder := name != m.Name
		if mode := m.Mode(); !mode.IsRegular() && !(folder && mode.IsDir()) {
			return fmt.Errorf("%q is neither file nor folder but %v", m.Name, mode)
		}
		if m.Method != zip.Store && m.Method != zip.Deflate || m.Flags&1 != 0 {
			return fmt.Errorf("%q is packed by method %d, flags %#x", m.Name, m.Method, m.Flags)
		}
		// The sum must not overflow.
		if m.UncompressedSize64 > maxUnpacked {
			return fmt.Errorf("%q unpacks to %d bytes, the limit is %d", m.Name, m.UncompressedSize64, int64(maxUnpacked))
		}
		if unpacked += int64(m.UncompressedSize64); unpacked > most {
			return fmt.Errorf("unpacks to more than %d bytes, out of %d", most, packed)
		}
		// Names that differ in case may be one file. Unwanted members may: Open MPI has mpicc and mpiCC.
		above := name
		if !folder {
			above = path.Dir(name)
			key := strings.ToLower(name)
			if other, twice := files[key]; twice && (other == name || wanted(name, patterns) || wanted(other, patterns)) {
				return fmt.Errorf("%q and %q are one file", other, name)
			}
			files[key] = name
		}
		for ; above != "."; above = path.Dir(above) {
			key := strings.ToLower(above)
			if other, known := folders[key]; known && other != above {
				return fmt.Errorf("%q and %q are one folder", other, above)
			} else if known {
				break
			}
			folders[key] = above
		}
	}
	for key, name := range files {
		if other, both := folders[key]; both {
			return fmt.Errorf("%q is a file and %q a folder", name, other)
		}
	}
	return nil
}

func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:\x00") || len(name) > 1024 {
		return fmt.Errorf("%.200q is not a clean relative path", name)
	}
	return nil
}

func match(members []*zip.File, patterns []string) ([]*zip.File, error) {
	var found []*zip.File
	matched := make([]bool, len(patterns))
	for _, m := range members {
		take := false
		for i, pattern := range patterns {
			if ok, _ := path.Match(pattern, m.Name); ok && !m.Mode().IsDir() {
				matched[i], take = true, true
			}
		}
		if take {
			found = append(found, m)
		}
	}
	for i, pattern := range patterns {
		if !matched[i] {
			return nil, fmt.Errorf("no member %q", pattern)
		}
	}
	return found, nil
}

func wanted(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
}

func unpack(ctx context.Context, member *zip.File, tree *os.Root) (fileRecord, error) {
	source, err := member.Open()
	if err != nil {
		return fileRecord{}, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	defer source.Close()
	mode := fs.FileMode(0o644)
	if path.Base(path.Dir(member.Name)) == "bin" { // programs, like CUDA's assembler
		mode = 0o755
	}
	// Package zip enforces the declared size.
	return writeFile(ctx, tree, member.Name, mode, source)
}

func writeFile(ctx context.Context, tree *os.Root, name string, mode fs.FileMode, source io.Reader) (fileRecord, error) {
	if err := tree.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fileRecord{}, err
	}
	out, err := tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fileRecord{}, fmt.Errorf("%w: another wheel has this file too", ErrArchive)
	}
	if err != nil {
		return fileRecord{}, err
	}
	defer out.Close()
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, digest), contextReader{ctx, source})
	switch {
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF):
		return fileRecord{}, fmt.Errorf("%w: %w", ErrArchive, err)
	case err != nil:
		return fileRecord{}, fetch.ExplainFullDisk(err, tree.Name())
	}
	if err := out.Sync(); err != nil {
		return fileRecord{}, fetch.ExplainFullDisk(err, tree.Name())
	}
	info, err := out.Stat()
	if err != nil {
		return fileRecord{}, err
	}
	record := stamp(info)
	record.Path, record.SHA256 = name, hex.EncodeToString(digest.Sum(nil))
	return record, out.Close()
}

type contextReader struct {
	ctx    context.Context
	source io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.source.Read(p)
}
