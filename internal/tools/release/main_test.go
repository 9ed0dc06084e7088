package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// checkout makes a repository with a module, a nested module that uses it, and the command.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":                "module example.org/loop\n\ngo 1.25.0\n",
		"loop.go":               "// Package loop has a function.\npackage loop\n\nfunc Old() int { return 1 }\n",
		"cmd/lazo/main.go":      "package main\n\nimport (\n\t\"fmt\"\n\t\"runtime/debug\"\n)\n\nfunc main() {\n\tinfo, _ := debug.ReadBuildInfo()\n\tfmt.Print(info.Main.Version)\n}\n",
		"part/go.mod":           "module example.org/loop/part\n\ngo 1.25.0\n\nrequire example.org/loop v0.0.0\n\nreplace example.org/loop => ..\n",
		"part/part.go":          "// Package part uses the module around it.\npackage part\n\nimport \"example.org/loop\"\n\nvar V = loop.Old()\n",
		"internal/tools/go.mod": "module example.org/loop/tools\n",
		"examples/go.mod":       "module example.org/loop/examples\n",
		"CHANGELOG.md":          "# Changelog\n\n## v0.1.0\n",
		"docs/renamed.tsv":      "",
		"LICENSE":               "free\n",
	})
	git(t, dir, "init", "-q")
	commit(t, dir)
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "all")
}

func run(t *testing.T, dir, version string) (string, error) {
	t.Helper()
	var log bytes.Buffer
	r := release{root: dir, version: version, out: filepath.Join(dir, ".release"), platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}, log: &log}
	err := r.run(t.Context())
	return log.String(), err
}

func expect(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q lacks %q", err, word)
		}
	}
}

func TestRelease_refuses(t *testing.T) {
	dir := checkout(t)
	for version, words := range map[string]string{"0.1.0": "vMAJOR.MINOR.PATCH", "v0.1": "vMAJOR.MINOR.PATCH", "v2.0.0": "below v2", "v0.2.0": `no section "## v0.2.0"`} {
		_, err := run(t, dir, version)
		expect(t, err, words)
	}
	git(t, dir, "tag", "v0.1.0")
	_, err := run(t, dir, "v0.1.0")
	expect(t, err, "the tag v0.1.0 exists")
}
