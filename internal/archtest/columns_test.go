package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const mostColumns = 120

// longComments returns the lines with a wider comment, except lists, code and example output, which must not be
// wrapped.
func longComments(text string) (lines []int) {
	output := false
	for i, line := range strings.Split(text, "\n") {
		words, comment := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
		output = comment && (output || strings.HasPrefix(words, "Output:"))
		if comment && !output && utf8.RuneCountInString(line) > mostColumns && words != "" && !strings.ContainsAny(words[:1], " \t-") {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func TestCommentsAreNotWide(t *testing.T) {
	wide := "// " + strings.Repeat("a word ", 17)
	require.Equal(t, []int{1, 4}, longComments(wide+"\n//\t"+wide+"\n//   - "+wide+"\n\t"+wide+"\nx := 1 "+wide+"\n// Output:\n"+wide))
	files := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2) {
			return skipped(err)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		if strings.HasSuffix(path, "cmd/lazo/hlo_test.go") {
			return err // a text that the command prints looks like a comment
		}
		for _, line := range longComments(string(text)) {
			t.Errorf("%s:%d: the comment has more than %d columns", path, line, mostColumns)
		}
		return err
	}))
	t.Logf("%d files", files)
}

func skipped(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
