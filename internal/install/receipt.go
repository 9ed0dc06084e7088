package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/fetch"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/owners"
)

const (
	receiptFormat = 1
	receiptName   = "receipt.json"
	receiptTemp   = ".receipt-"
	receiptLimit  = 1 << 20
)

type receipt struct {
	Format   int          `json:"format"`
	Kind     string       `json:"kind"`
	Version  string       `json:"version"`
	API      string       `json:"pjrt_api"`
	Platform string       `json:"platform"`
	Licence  string       `json:"licence"`
	Dir      string       `json:"dir"`
	Library  string       `json:"library"`
	Wheels   []string     `json:"wheels"` // SHA-256
	Files    []fileRecord `json:"files"`
}

func (r *receipt) file(name string) *fileRecord {
	for i := range r.Files {
		if r.Files[i].Path == name {
			return &r.Files[i]
		}
	}
	return nil
}

func (r *receipt) plugin(folder string, table []Wheel) Plugin {
	return Plugin{
		Kind: r.Kind, Version: r.Version, API: r.API, Licence: r.Licence, Platform: r.Platform,
		Path: filepath.Join(folder, r.Dir, filepath.FromSlash(r.Library)), SHA256: r.file(r.Library).SHA256,
		Stamp: r.stamp(folder), Successor: r.successor(table),
	}
}

func (r *receipt) successor(table []Wheel) string {
	rows, err := wheelsFor(r.Kind, table)
	if err != nil || r.Version == "" {
		return ""
	}
	version, same := "", true
	for _, w := range rows {
		if w.Library != "" {
			version = w.Version
		}
		same = same && slices.Contains(r.Wheels, w.SHA256)
		if w.Library != "" && slices.Contains(r.Wheels, w.LibrarySHA256) {
			return ""
		}
	}
	if same {
		return ""
	}
	return version
}

func readReceipt(folder string) (*receipt, error) {
	name := filepath.Join(folder, receiptName)
	if info, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w below %s", ErrNotInstalled, folder)
	} else if err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > receiptLimit {
		return nil, fmt.Errorf("%w: %s is not a receipt but %v of %d bytes", ErrDamaged, name, info.Mode(), info.Size())
	}
	text, err := owners.ReadFile(name, receiptLimit)
	if err != nil {
		return nil, err
	}
	r, err := parseReceipt(text)
	if kind := filepath.Base(folder); err == nil && r.Kind != kind {
		err = fmt.Errorf("it says the kind %.200q, in the folder of %q", r.Kind, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, listed.Short(err))
	}
	return r, nil
}

// parseReceipt accepts only what layDown writes: its files are run.
func parseReceipt(text []byte) (*receipt, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var r receipt
	if err := decoder.Decode(&r); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("data follows the receipt")
	}
	if r.Format != receiptFormat {
		return nil, fmt.Errorf("format %d, want %d", r.Format, receiptFormat)
	}
	if !strings.HasPrefix(r.Dir, dirPrefix) || strings.Contains(r.Dir, "/") {
		return nil, fmt.Errorf("%.200q is not the folder of a version", r.Dir)
	}
	for _, f := range r.Files {
		if err := checkName(f.Path); err != nil {
			return nil, err
		}
		if !isDigest(f.SHA256) {
			return nil, fmt.Errorf("%.200q has no digest", f.Path)
		}
	}
	if r.file(r.Library) == nil {
		return nil, fmt.Errorf("library %.200q is not among the files", r.Library)
	}
	return &r, nil
}

func (r *receipt) write(folder string) (err error) {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(folder, receiptTemp+"*")
	if err != nil {
		return fetch.ExplainFullDisk(err, folder)
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
			os.RemoveAll(filepath.Join(folder, r.Dir))
		}
	}()
	if _, err := temp.Write(append(text, '\n')); err != nil {
		return fetch.ExplainFullDisk(err, folder)
	}
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return fetch.ExplainFullDisk(err, folder)
	}
	if err := temp.Close(); err != nil {
		return fetch.ExplainFullDisk(err, folder)
	}
	if err := os.Rename(temp.Name(), filepath.Join(folder, receiptName)); err != nil {
		return err
	}
	return syncDir(folder)
}

type depth bool

const (
	quick depth = false // size, time and inode suffice
	full  depth = true  // every byte
)

func (r *receipt) verify(ctx context.Context, folder string, table []Wheel, d depth) error {
	for _, w := range table {
		// Of all kinds: the wheel's may have changed.
		pinned := w.LibrarySHA256 != "" && slices.Contains(r.Wheels, w.SHA256)
		if got := r.file(r.Library).SHA256; pinned && got != w.LibrarySHA256 {
			return fmt.Errorf("%w: the receipt in %s gives its library the SHA-256 %s, want %s", ErrDamaged, folder, got, w.LibrarySHA256)
		}
	}
	dir := filepath.Join(folder, r.Dir)
	known := make(map[string]bool)
	for _, f := range r.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		for above := filepath.Dir(path); above != folder && !known[above]; above = filepath.Dir(above) {
			if err := checkMode(above, true); err != nil {
				return err
			}
			known[above] = true
		}
		if err := checkMode(path, false); err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		now := stamp(info)
		if d == quick && now.Size == f.Size && now.MTime == f.MTime && now.Inode == f.Inode {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetch.VerifyFile(path, f.Size, f.SHA256); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return nil
}

// stamp includes the change time, which programs cannot reset.
func (r *receipt) stamp(folder string) string {
	all := sha256.New()
	for _, f := range r.Files {
		fmt.Fprintln(all, f.Path, stateOf(filepath.Join(folder, r.Dir, filepath.FromSlash(f.Path))))
	}
	return hex.EncodeToString(all.Sum(nil))
}

func readBack(ctx context.Context, dir string, files []fileRecord) error {
	for _, f := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetch.VerifyFile(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Size, f.SHA256); err != nil {
			return fmt.Errorf("the written file reads back differently: check the disk: %w", err)
		}
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = syncDir(path)
		}
		return err
	})
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
