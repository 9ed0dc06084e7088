package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkRows looks for a row for each line "group name" of a list, in the tables under the heading that ends in the
// group's word: "callback x" under "## Callbacks". It counts the names of each group.
func checkRows(t *testing.T, document, list string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	rows := rowsByHeading(string(text))
	names, err := os.ReadFile(list)
	require.NoError(t, err)
	counts := map[string]int{}
	for line := range strings.Lines(string(names)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		group, name, isName := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, isName, "%s: %q", list, line)
		counts[group]++
		if rows[group][name] == "" {
			t.Errorf("%s has no row for %q under %q, or an empty one", document, name, group)
		}
	}
	t.Logf("%s: names with a row: %v", document, counts)
	return counts
}

// rowsByHeading returns the second cells of tables by the last word of the heading above, in the singular, and by each
// name in backticks in the first cell.
func rowsByHeading(text string) map[string]map[string]string {
	rows, heading := map[string]map[string]string{}, ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			words := strings.Fields(strings.ToLower(line))
			heading = words[len(words)-1]
			if singular, isPlural := strings.CutSuffix(heading, "sses"); isPlural {
				heading = singular + "ss"
			} else if singular, isPlural := strings.CutSuffix(heading, "s"); isPlural && !strings.HasSuffix(singular, "s") {
				heading = singular
			}
			rows[heading] = map[string]string{}
		}
		if cells := strings.SplitN(line, "|", 4); len(cells) == 4 {
			for _, name := range span.FindAllStringSubmatch(cells[1], -1) {
				rows[heading][name[1]] = strings.TrimSpace(cells[2])
			}
		}
	}
	return rows
}

func TestRowsByHeading(t *testing.T) {
	rows := rowsByHeading("## fit\n| `a` | `b.C` |\n| `d`, `e` | |\n# The losses\n| `f` | not here |\n## Callbacks\n| g | h |\n")
	require.Equal(t, map[string]map[string]string{"fit": {"a": "`b.C`", "d": "", "e": ""}, "loss": {"f": "not here"}, "callback": {}}, rows)
}
