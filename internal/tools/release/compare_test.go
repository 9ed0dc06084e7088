package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// S60
func TestRelease(t *testing.T) {
	dir := checkout(t)
	log, err := run(t, dir, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"part/go.mod requires v0.1.0", "go get example.org/loop/part@v0.1.0 works", "compared with none", "git tag v0.1.0\n", "git tag part/v0.1.0\n"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log lacks %q: %s", line, log)
		}
	}
	if strings.Contains(log, "examples") {
		t.Errorf("a module of examples is not released: %s", log)
	}
	text, err := os.ReadFile(filepath.Join(dir, "part", "go.mod"))
	if err != nil || !strings.Contains(string(text), "require example.org/loop v0.1.0") {
		t.Errorf("%s, %v", text, err)
	}
	checkArchive(t, dir)
}

// checkArchive runs the packed command, which knows its version.
func checkArchive(t *testing.T, dir string) {
	t.Helper()
	name := fmt.Sprintf("lazo_v0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	packed, err := os.ReadFile(filepath.Join(dir, ".release", name))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, ".release", "SHA256SUMS"))
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(packed), name); err != nil || string(sums) != want {
		t.Errorf("%s, %v, expected %s", sums, err, want)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(unpacked)
	if h, err := files.Next(); err != nil || h.Name != "lazo" {
		t.Fatal(h, err)
	}
	program, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lazo")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).Output(); err != nil || string(out) != "v0.1.0" {
		t.Errorf("the command prints %q, %v", out, err)
	}
}

func TestRelease_comparesNames(t *testing.T) {
	dir := checkout(t)
	git(t, dir, "tag", "v0.1.0")
	write(t, dir, map[string]string{
		"CHANGELOG.md": "# Changelog\n\n## v0.2.0\n\n## v0.1.0\n",
		"loop.go":      "// Package loop has a function.\npackage loop\n\nfunc New() int { return 1 }\n",
		"part/part.go": "// Package part uses the module around it.\npackage part\n\nimport \"example.org/loop\"\n\nvar V = loop.New()\n",
	})
	commit(t, dir)
	_, err := run(t, dir, "v0.2.0")
	expect(t, err, "incompatible changes since v0.1.0", "Old: removed")
	write(t, dir, map[string]string{"docs/renamed.tsv": "loops\t`loop.Old`\t`loop.New`\n"})
	log, err := run(t, dir, "v0.2.0")
	if err != nil || !strings.Contains(log, "each incompatible change since v0.1.0 is documented") {
		t.Error(log, err)
	}
}
