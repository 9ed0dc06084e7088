package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests that `make race` excludes or runs separately exist: a name without a test would go unnoticed.
func TestMakefile_namesTests(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^ONE_GOROUTINE = \^\((.*)\)\$\$$`).FindSubmatch(text)
	require.NotNil(t, list)
	missing := map[string]bool{}
	for _, name := range strings.Split(string(list[1]), "|") {
		missing[name] = true
	}
	for _, alone := range regexp.MustCompile(`-run '\^(\w+)\$\$'`).FindAllSubmatch(text, -1) {
		missing[string(alone[1])] = true
	}
	require.True(t, missing["TestGradientsInParallel"])
	require.Greater(t, len(missing), 5)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir // .tools, which `make conformance` may use at the same time
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		tests, err := os.ReadFile(path)
		for name := range missing {
			if strings.Contains(string(tests), "\nfunc "+name+"(") {
				delete(missing, name)
			}
		}
		return err
	}))
	require.Empty(t, missing)
}
