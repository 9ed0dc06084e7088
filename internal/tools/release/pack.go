package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func (r *release) pack(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range r.platforms {
		system, machine, _ := strings.Cut(platform, "/")
		program, err := r.build(ctx, system, machine)
		if err != nil {
			return err
		}
		name, archive := "lazo", tarball
		file := fmt.Sprintf("lazo_%s_%s_%s.tar.gz", r.version, system, machine)
		if system == "windows" {
			name, archive = "lazo.exe", zipped
			file = strings.TrimSuffix(file, ".tar.gz") + ".zip"
		}
		var packed bytes.Buffer
		if err := archive(&packed, entry{name, 0o755, program}, entry{"LICENSE", 0o644, license}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, file), packed.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(packed.Bytes()), file)
		fmt.Fprintf(r.log, "%s: %d bytes\n", file, packed.Len())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// By go install PATH@VERSION the command knows its version.
func (r *release) build(ctx context.Context, system, machine string) ([]byte, error) {
	env, err := r.outside(ctx)
	if err != nil {
		return nil, err
	}
	env = append(env, "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine, "GOBIN=", "GOFLAGS=-modcacherw -trimpath")
	if _, err := output(ctx, r.work, env, "go", "install", "-ldflags=-s -w", r.modules[0].path()+"/cmd/lazo@"+r.version); err != nil {
		return nil, err
	}
	dir, name := filepath.Join(r.work, "go", "bin"), "lazo"
	if system != runtime.GOOS || machine != runtime.GOARCH {
		dir = filepath.Join(dir, system+"_"+machine)
	}
	if system == "windows" {
		name += ".exe"
	}
	return os.ReadFile(filepath.Join(dir, name))
}

type entry struct {
	name    string
	mode    os.FileMode
	content []byte
}

// Archives have no times, so that the same files make the same bytes.
func tarball(w io.Writer, entries ...entry) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		if err := tw.WriteHeader(&tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content))}); err != nil {
			return err
		}
		if _, err := tw.Write(e.content); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

func zipped(w io.Writer, entries ...entry) error {
	zw := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		f, err := zw.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.content); err != nil {
			return err
		}
	}
	return zw.Close()
}
