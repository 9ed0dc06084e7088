package archtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The marks of tests that `make race` leaves out or runs separately stand where it looks: a
// mistake would go unnoticed.
func TestMakefile_marksOfTests(t *testing.T) {
	const root = "../.."
	marked := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir // .tools, which `make conformance` may use at the same time
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		tests, err := os.ReadFile(path)
		for _, next := range regexp.MustCompile(`\n//lazo:(norace|race)\n(.*)`).FindAllSubmatch(append([]byte("\n"), tests...), -1) {
			marked++
			require.Regexp(t, `^(func Test\w+\(|package )`, string(next[2]), "%s: //lazo:%s stands before a test or a package clause", path, next[1])
		}
		return err
	}))
	require.Greater(t, marked, 50)
}

// importsAlone are packages whose tests import what can open a plugin, and open none.
var importsAlone = map[string]bool{"internal/archtest": true}

// PLAIN, what `make quick` tests, is each package whose tests need no plugin, and no other.
func TestMakefile_plainPackages(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^PLAIN = (.*)$`).FindSubmatch(text)
	require.NotNil(t, list)
	cmd := exec.Command("sh", "-c", "printf '%s\\n' "+strings.NewReplacer("$(GO)", "go", "$$", "$").Replace(string(list[1])))
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	plain := strings.Fields(string(out))
	all := map[string]pkg{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	var needsPlugin func(imports []string) bool
	needsPlugin = func(imports []string) bool {
		return slices.ContainsFunc(imports, func(i string) bool {
			own, ours := all[i]
			return i == module+"internal/pjrt" || i == module+"internal/plugintest" || ours && needsPlugin(own.Imports)
		})
	}
	require.True(t, needsPlugin([]string{module + "managed/strategytest"}))
	tested := 0
	for path, p := range all {
		tests := slices.Concat(p.TestImports, p.XTestImports)
		if len(tests) == 0 || strings.HasPrefix(path, module+"examples/") {
			continue
		}
		if tested++; (needsPlugin(slices.Concat(p.Imports, tests)) || path == module+"internal/pjrt") && !importsAlone[strings.TrimPrefix(path, module)] {
			assert.NotContains(t, plain, path, "its tests may open a plugin, and PLAIN of the Makefile has it")
		} else {
			assert.Contains(t, plain, path, "its tests need no plugin, and PLAIN of the Makefile lacks it")
		}
	}
	require.Greater(t, tested, 40)
}
