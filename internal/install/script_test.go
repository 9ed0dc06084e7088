package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row returns a wheel's line of plugins.tsv.
func (w Wheel) row() string {
	fields := []string{w.Kind, w.Platform, w.Package, w.Version, w.File, strconv.FormatInt(w.Size, 10), w.SHA256,
		strings.Join(w.Members, ","), w.Library, w.LibrarySHA256, w.API, w.Licence}
	for i := range fields {
		if fields[i] == "" {
			fields[i] = "-"
		}
	}
	return strings.Join(fields, "\t") + "\n"
}

// The script runs in a copy of the tree, with a table of toys and a go command that only prints its arguments.
func TestScript(t *testing.T) {
	one, other := newToy(t, "1.0", noise(1, 5000)), newToy(t, "2.0", noise(2, 5000))
	one.Kind = "cpu"
	second := other.Wheel
	second.Library, second.LibrarySHA256 = "", ""
	first := one.Wheel
	first.Kind, first.File, first.SHA256 = "toy", "main-1.0-py3-none-any.whl", sum([]byte("main"))

	tree := filepath.Join(t.TempDir(), "a tree $(touch pwned)")
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(tree, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	text, err := os.ReadFile("../../scripts/install_pjrt.sh")
	require.NoError(t, err)
	script := put("scripts/install_pjrt.sh", string(text), 0o755)
	put("internal/install/plugins.tsv", "# comment\n"+one.Wheel.row()+first.row()+second.row(), 0o644)
	_, err = parseTable("# comment\n" + one.Wheel.row() + first.row() + second.row())
	require.NoError(t, err)
	put("bin/go", "#!/bin/sh\npwd -P\nfor a; do printf '[%s]' \"$a\"; done\n", 0o755)
	known := put("elsewhere/"+one.File, string(one.wheel), 0o644)
	renamed := put("elsewhere/it's a; name", string(one.wheel), 0o644)
	library := put("elsewhere/toy.so", string(one.lib), 0o644)
	unknown := put("elsewhere/unknown.whl", string(other.wheel), 0o644)
	wrong := put("elsewhere/wrong/"+one.File, string(one.lib), 0o644) // right for the library, wrong for this name
	put("elsewhere/all/"+first.File, "main", 0o644)
	put("elsewhere/all/"+second.File, string(other.wheel), 0o644)
	put("elsewhere/some/"+first.File, "main", 0o644)
	put("elsewhere/bad/"+first.File, "evil", 0o644)
	put("elsewhere/bad/"+second.File, string(other.wheel), 0o644)
	elsewhere := filepath.Dir(known)

	tests := []struct {
		name string
		args []string
		code int
		want string // in what is printed
	}{
		{"nothing given", nil, 0, "[run][./cmd/lazo][install][cpu]"},
		{"kind", []string{"toy"}, 0, "[install][toy]"},
		{"check", []string{"toy", "--check"}, 0, "[install][toy][--check]"},
		{"option first", []string{"--force", "cpu"}, 0, "[install][cpu][--force]"},
		{"prefix becomes absolute", []string{"--prefix", "x y"}, 0, "[install][cpu][--prefix=" + elsewhere + "/x y]"},
		{"absolute prefix", []string{"cpu", "--prefix=/x"}, 0, "[--prefix=/x]"},
		{"index", []string{"--index-url", "https://host/$(touch pwned)"}, 0, "[--index-url=https://host/$(touch pwned)]"},
		{"known wheel", []string{"--from", one.File}, 0, "[--from=" + known + "]"},
		{"known wheel, any name", []string{"--from=" + renamed}, 0, "[--from=" + renamed + "]"},
		{"known library", []string{"--from", library}, 0, "[--from=" + library + "]"},
		{"unknown wheel", []string{"--from", unknown}, 1, "--sha256"},
		{"unknown wheel, its digest", []string{"--from", unknown, "--sha256", other.SHA256}, 0, "[--sha256=" + other.SHA256 + "]"},
		{"unknown wheel, other digest", []string{"--sha256", one.SHA256, "--from", unknown}, 1, "is not " + one.SHA256},
		{"known name, wrong bytes", []string{"--from", wrong}, 1, "is not one that the table has for cpu"},
		{"wheel of another kind", []string{"toy", "--from", known}, 1, "for toy on"},
		{"missing file", []string{"--from", "none"}, 1, "no such file"},
		{"folder", []string{"toy", "--from", "all"}, 0, "[--from=" + elsewhere + "/all]"},
		{"folder lacks one", []string{"toy", "--from", "some"}, 1, "lacks " + second.File},
		{"folder with a wrong one", []string{"toy", "--from", "bad"}, 1, "wrong digest"},
		{"help", []string{"--help"}, 0, "usage: "},
		{"unknown kind", []string{"gpu"}, 2, "unknown plugin gpu"},
		{"two kinds", []string{"cpu", "toy"}, 2, "one plugin at a time"},
		{"unknown option", []string{"--frobnicate"}, 2, "unknown option"},
		{"no value", []string{"--from"}, 2, "needs a value"},
		{"empty value", []string{"--prefix="}, 2, "needs a value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			command := exec.Command("/bin/sh", append([]string{script}, test.args...)...)
			command.Dir = elsewhere
			command.Env = []string{"PATH=" + filepath.Join(tree, "bin") + ":" + os.Getenv("PATH")}
			out, err := command.CombinedOutput()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, test.code, code, "%s", out)
			require.Contains(t, string(out), test.want)
			if test.code != 0 {
				require.NotContains(t, string(out), "[run]", "nothing is handed on")
			} else if test.name != "help" {
				require.True(t, strings.HasPrefix(string(out), tree+"\n"), "runs in the root of the tree: %s", out)
			}
			require.NoFileExists(t, filepath.Join(elsewhere, "pwned"))
			require.NoFileExists(t, filepath.Join(tree, "pwned"))
		})
	}
}
