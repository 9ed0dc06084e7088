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

// Each row of docs/maintain/parity.tsv names tests that exist, or says why it has none.
func TestParityNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../docs/maintain/parity.tsv")
	require.NoError(t, err)
	rows, named, without, faults := parity(string(text), testsOf(t, "../.."))
	require.Empty(t, faults)
	require.GreaterOrEqual(t, rows, 324, "rows are missing")
	require.LessOrEqual(t, without, 10, "rows without a test")
	t.Logf("%d rows, %d tests named, %d rows without a test", rows, named, without)
}

// The control: a row without a test, with one that does not exist, or with another number of cells is a fault.
func TestParity_finds(t *testing.T) {
	defined := map[string]bool{"TestA": true, "ExampleB": true}
	rows, named, without, faults := parity("# a comment\nx\ty\tz\tTestA ExampleB\nx\ty\tz\tnone: Go has it\nfigures\ty\tz\tnone: a description\n", defined)
	require.Equal(t, []int{2, 2, 1}, []int{rows, named, without})
	require.Empty(t, faults)
	for _, row := range []string{"x\ty\tz\t", "x\ty\tz\tTestB", "x\ty\tz\ttestA", "x\ty\tTestA", "x\ty\tz\tTestA\t", ""} {
		_, _, _, faults = parity(row+"\n", defined)
		require.NotEmpty(t, faults, row)
	}
}

// parity counts the rows of docs/maintain/parity.tsv outside the section "figures", and returns their faults.
func parity(text string, defined map[string]bool) (rows, named, without int, faults []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 4 || cells[3] == "" {
			faults = append(faults, "not four cells with a test in the last: "+line)
			continue
		}
		if cells[0] == "figures" {
			continue
		}
		rows++
		if strings.HasPrefix(cells[3], "none:") { // followed by the reason
			without++
			continue
		}
		for name := range strings.FieldsSeq(cells[3]) {
			if named++; !testName.MatchString(name) || !defined[name] {
				faults = append(faults, "no test "+name+": "+line)
			}
		}
	}
	return rows, named, without, faults
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
