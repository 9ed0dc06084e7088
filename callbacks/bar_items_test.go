package callbacks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// At any width, no name and no number is truncated, and nothing is wider than the terminal unless a single entry is.
func TestBar_allWidths(t *testing.T) {
	whole := map[string]bool{}
	wide := emulate(400)
	words := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n-", r) })
	}
	training(t, wide, func(string) {
		for _, word := range words(wide.String()) {
			whole[word] = true
		}
	}, wide.option())
	for _, columns := range []int{1, 7, 14, 21, 31, 39, 47, 56, 73, 91, 108} {
		screen := emulate(400) // which cuts nothing itself
		screen.columns.Store(int64(columns))
		training(t, screen, func(moment string) {
			for line := range strings.Lines(screenText(screen.String())) {
				if strings.HasPrefix(line, "level=") {
					continue
				}
				for _, word := range words(line) {
					require.True(t, whole[word] || strings.Contains(word, "["), "%q in %q of %d columns", word, line, columns)
				}
				if columns > 30 {
					require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), columns)
				}
			}
		}, screen.option())
	}
}
