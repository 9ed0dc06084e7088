package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	xmod "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func (r *release) serve(ctx context.Context) error {
	for _, m := range r.modules {
		escaped, err := xmod.EscapePath(m.path())
		if err != nil {
			return err
		}
		dir := filepath.Join(r.work, "proxy", filepath.FromSlash(escaped), "@v")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		text, err := m.mod.Format()
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Now().UTC().Truncate(time.Second)})
		if err != nil {
			return err
		}
		for name, content := range map[string][]byte{"list": []byte(r.version + "\n"), r.version + ".mod": text, r.version + ".info": info} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				return err
			}
		}
		packed, err := os.Create(filepath.Join(dir, r.version+".zip"))
		if err != nil {
			return err
		}
		var files []zip.File
		if files, err = r.tracked(ctx, m); err == nil {
			err = zip.Create(packed, xmod.Version{Path: m.path(), Version: r.version}, files)
		}
		if closeErr := packed.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return nil
}

// as in a tag
type trackedFile struct{ path, file string }

func (f trackedFile) Path() string                 { return f.path }
func (f trackedFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.file) }
func (f trackedFile) Open() (io.ReadCloser, error) { return os.Open(f.file) }

func (r *release) tracked(ctx context.Context, m module) (files []zip.File, err error) {
	dir := filepath.Join(r.root, m.dir)
	names, err := output(ctx, dir, nil, "git", "ls-files", "-z")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		files = append(files, trackedFile{name, filepath.Join(dir, filepath.FromSlash(name))})
	}
	return files, err
}

// Modules of this version come from serve's proxy, others from the module cache or the usual proxy.
func (r *release) outside(ctx context.Context) ([]string, error) {
	values, err := output(ctx, r.root, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, proxy, _ := strings.Cut(values, "\n")
	return []string{
		"GOPATH=" + filepath.Join(r.work, "go"), "GOMODCACHE=" + filepath.Join(r.work, "modules"), "GOFLAGS=-mod=mod -modcacherw", "GOWORK=off",
		"GOPROXY=file://" + filepath.Join(r.work, "proxy") + ",file://" + filepath.Join(cache, "cache", "download") + "," + proxy,
		"GONOSUMDB=" + r.modules[0].path(),
	}, nil
}

func (r *release) use(ctx context.Context) error {
	env, err := r.outside(ctx)
	if err != nil {
		return err
	}
	for i, m := range r.modules {
		dir := filepath.Join(r.work, fmt.Sprintf("user%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for _, args := range [][]string{{"mod", "init", "example.com/user"}, {"get", m.path() + "@" + r.version}, {"build", m.path() + "/..."}} {
			if _, err := output(ctx, dir, env, "go", args...); err != nil {
				return fmt.Errorf("outside of the checkout: %w", err)
			}
		}
		fmt.Fprintf(r.log, "go get %s@%s works, and its packages build\n", m.path(), r.version)
	}
	return nil
}
