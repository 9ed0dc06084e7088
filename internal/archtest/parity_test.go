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

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w*)\(`)
	testName = regexp.MustCompile(`^(?:Test|Example|Fuzz|Benchmark)\w*$`)
)

// Tests that docs/maintain/parity.md names exist.
func TestParityNamesTestsThatExist(t *testing.T) {
	defined := testsOf(t, "../..")
	text, err := os.ReadFile("../../docs/maintain/parity.md")
	require.NoError(t, err)
	rows, named, without := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "/"), "|")
		if len(cells) < 5 || strings.HasPrefix(strings.TrimSpace(cells[1]), "---") || strings.TrimSpace(cells[3]) == "test" {
			continue
		}
		rows++
		require.Len(t, cells, 5, "a row has three cells: %s", line)
		last := strings.TrimSpace(cells[3])
		if strings.HasPrefix(last, "none:") { // followed by the reason
			without++
			continue
		}
		require.NotEmpty(t, last, "no test: %s", line)
		for name := range strings.FieldsSeq(last) {
			require.Regexp(t, testName, name, line)
			require.True(t, defined[name], "no test %s: %s", name, line)
			named++
		}
	}
	require.Greater(t, rows, 50, "the tables were not found")
	require.LessOrEqual(t, without, 10, "rows without a test")
	t.Logf("%d rows, %d tests named, %d rows without a test", rows, named, without)
}

func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir // .tools, which `make conformance` may use at the same time
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			all[string(match[1])] = true
		}
		return err
	}))
	return all
}
