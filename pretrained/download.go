package pretrained

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/lazo-ml/lazo/internal/fetch"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

// Hub configures [Download].
type Hub struct {
	// Cache is the folder for the files, required. Python's huggingface_hub can share it: ~/.cache/huggingface/hub.
	Cache    string
	Endpoint string // default https://huggingface.co
	Token    string // for private and gated models
	Revision string // a branch, tag or commit; default main
	// Files selects files by patterns of [path.Match], like "*Q8_0.gguf". Default: those that Open and the tokenizer read.
	Files []string
	// HTTP sends the requests; default: TLS 1.2 or newer, proxies from the environment.
	HTTP *http.Client
	// Progress, unless nil, is called after each received piece.
	Progress func(file string, done, total int64)
}

// Download downloads a model by its name, like "sentence-transformers/all-MiniLM-L6-v2", and returns its folder for
// [Open]. It verifies digests, also of cached files, which it does not request, and continues a broken download. With
// the hash of a commit as Revision, a complete folder needs no request.
//
// Errors: those of the network and the disk, a name, revision or file that the hub lacks, and bytes that differ from
// its digest.
func Download(ctx context.Context, name string, from Hub) (folder string, err error) {
	folder, err = from.download(ctx, name)
	if err != nil {
		return "", fmt.Errorf("pretrained: download %s: %w", listed.Cut(name), err)
	}
	return folder, nil
}

var hubFiles = []string{"*.json", "*.txt", "*.model", "*.jinja", weightsFile, "model-*-of-*.safetensors", "adapter_model.safetensors", "*_*/config.json", "*_*/" + weightsFile}

type hubListing struct {
	commit string
	files  []hubFile
}

type hubFile struct {
	name, blob string
	size       int64
}

const mostListing, mostFiles = 8 << 20, 1 << 16

var (
	hubName   = regexp.MustCompile(`^[\w-][\w.-]*(/[\w-][\w.-]*)?$`)
	hubCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hubDigest = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

func (h Hub) download(ctx context.Context, name string) (string, error) {
	if !hubName.MatchString(name) {
		return "", fmt.Errorf(`a name as "organization/model" is expected`)
	}
	if h.Cache == "" {
		return "", errors.New("the Cache is empty, expected a folder")
	}
	h.Endpoint, h.Revision = strings.TrimSuffix(cmp.Or(h.Endpoint, "https://huggingface.co"), "/"), cmp.Or(h.Revision, "main")
	dir := filepath.Join(h.Cache, "models--"+strings.ReplaceAll(name, "/", "--"))
	all, err := h.list(ctx, name, dir)
	if err != nil {
		return "", err
	}
	files, err := h.selected(all)
	if err != nil {
		return "", err
	}
	snapshot := filepath.Join(dir, "snapshots", all.commit)
	for _, f := range files {
		if err := h.file(ctx, f, h.Endpoint+"/"+name+"/resolve/"+all.commit+"/"+escaped(f.name), dir, filepath.Join(snapshot, filepath.FromSlash(f.name))); err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if h.Revision != all.commit {
		ref := filepath.Join(dir, "refs", filepath.FromSlash(h.Revision))
		if err := os.MkdirAll(filepath.Dir(ref), 0o755); err != nil {
			return "", err
		}
		err = regular.Replace(ref, func(f *os.File) error { _, err := f.WriteString(all.commit); return err })
	}
	return snapshot, err
}

func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// list returns the revision's files. Those of a commit never change, and are kept.
func (h Hub) list(ctx context.Context, name, dir string) (all hubListing, err error) {
	if !local(h.Revision) {
		return all, fmt.Errorf("the Revision is %s, expected a branch, tag or commit", listed.Quoted(h.Revision))
	}
	kept := func(commit string) string { return filepath.Join(dir, "lazo", commit+".json") }
	fixed := hubCommit.MatchString(h.Revision)
	if fixed {
		if text, err := regular.Read(kept(h.Revision), mostListing); err == nil {
			if all, err = listing(text); err == nil && all.commit == h.Revision {
				return all, nil
			} // a damaged one is replaced
		}
	}
	address := h.Endpoint + "/api/models/" + name + "/revision/" + url.PathEscape(h.Revision) + "?blobs=true"
	client := fetch.Client{HTTP: h.HTTP, TotalTimeout: 5 * time.Minute}
	text, err := client.Get(ctx, address, h.Token, mostListing)
	if err != nil {
		return all, h.explain(err)
	}
	if all, err = listing(text); err != nil {
		return all, fmt.Errorf("the hub's list of files: %w", listed.Short(err))
	}
	if !hubCommit.MatchString(all.commit) || fixed && h.Revision != all.commit {
		return all, fmt.Errorf("the hub lists files of the commit %s, expected %s", listed.Quoted(all.commit), listed.Cut(h.Revision))
	}
	if err := os.MkdirAll(filepath.Dir(kept("")), 0o755); err != nil {
		return all, err
	}
	return all, regular.Replace(kept(all.commit), func(f *os.File) error { _, err := f.Write(text); return err })
}

func listing(text []byte) (all hubListing, err error) {
	fields, err := object(text)
	if err != nil {
		return all, err
	}
	c, list := &config{file: "the hub", fields: fields}, []json.RawMessage{}
	if all.commit = c.text("sha", ""); json.Unmarshal(fields["siblings"], &list) != nil || len(list) > mostFiles {
		c.fail("siblings", "a list of at most %d files", mostFiles)
	}
	seen := map[string]bool{}
	for _, text := range list {
		if c.err != nil {
			break
		}
		f, err := object(text)
		if err != nil {
			return all, err
		}
		in, size := &config{file: "a file", fields: f}, int64(0)
		one := hubFile{name: in.text("rfilename", ""), blob: in.text("blobId", "")}
		from := in
		if in.has("lfs") {
			if f, err = object(f["lfs"]); err != nil {
				return all, err
			}
			from = &config{file: "a file", fields: f}
			one.blob = from.text("sha256", "")
		}
		if from.has("size") && from.decode("size", &size) != nil {
			from.fail("size", "a number of bytes")
		}
		if one.size = size; seen[one.name] {
			in.fail("rfilename", "each file once: it is listed twice")
		}
		seen[one.name] = true
		all.files, c.err = append(all.files, one), in.err
		if from != in {
			c.err = errors.Join(in.err, from.err)
		}
	}
	return all, c.err
}

// local: a name is a file's in a folder on each system.
func local(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && path.Clean(name) == name && name != "." && !strings.Contains(name, `\`) && !strings.ContainsFunc(name, unicode.IsControl)
}

func (h Hub) explain(err error) error {
	if errors.Is(err, fetch.ErrStatus) {
		return fmt.Errorf("%w: is the name right, and may the Token read a private or gated model?", err)
	}
	return err
}

func (h Hub) selected(all hubListing) (files []hubFile, err error) {
	patterns := h.Files
	if len(patterns) == 0 {
		patterns = hubFiles
	}
	unused := slices.Clone(patterns)
	weights := false
	for _, f := range all.files {
		matches := false
		for _, p := range patterns {
			ok, err := path.Match(p, f.name)
			if err != nil {
				return nil, fmt.Errorf("the pattern %s of Files: %w", listed.Quoted(p), err)
			}
			if ok {
				matches, unused = true, slices.DeleteFunc(unused, func(u string) bool { return u == p })
			}
		}
		if !matches {
			continue
		}
		if !local(f.name) || !hubDigest.MatchString(f.blob) || f.size < 1 {
			return nil, fmt.Errorf("the hub lists the file %s with the digest %s and %d bytes, expected a local name, a SHA-1 or SHA-256, and at least a byte", listed.Quoted(f.name), listed.Quoted(f.blob), f.size)
		}
		files, weights = append(files, f), weights || path.Ext(f.name) == ".safetensors"
	}
	switch {
	case len(h.Files) > 0 && len(unused) > 0:
		return nil, fmt.Errorf("no file matches %q", unused)
	case len(h.Files) == 0 && !weights:
		return nil, fmt.Errorf("it has no %s, nor shards of one: other formats are not read; Files selects a GGUF file", weightsFile)
	}
	return files, nil
}

func (h Hub) file(ctx context.Context, f hubFile, address, dir, link string) error {
	blob := filepath.Join(dir, "blobs", f.blob)
	for _, d := range []string{filepath.Dir(blob), filepath.Dir(link)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	of := fetch.File{Name: f.name, URL: address, Size: f.size, Blob: f.blob, Token: h.Token}
	if len(f.blob) == 64 {
		of.SHA256, of.Blob = f.blob, ""
	}
	client := fetch.Client{HTTP: h.HTTP, TotalTimeout: 24 * time.Hour}
	if h.Progress != nil {
		client.Progress = func(done, total int64) { h.Progress(f.name, done, total) }
	}
	if err := client.Resume(ctx, of, blob); err != nil {
		return h.explain(err)
	}
	to, err := filepath.Rel(filepath.Dir(link), blob)
	if err != nil {
		return err
	}
	if there, err := os.Readlink(link); err == nil && there == to {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(to, link); err != nil {
		return os.Link(blob, link) // Windows links symbolically for some users only
	}
	return nil
}
