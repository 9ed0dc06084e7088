package records

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	for name, of := range map[string]func() Lines{"JSON": JSONLines, "CSV": CSVLines} {
		lines, again := of(), of()
		var steps []int64
		for i, r := range someRows() {
			header, behind := lines.Widen(&r)
			require.Equal(t, name == "CSV", len(header) > 0, "%s: a row with a new column", name)
			require.Equal(t, strings.Repeat(",", 2*i*min(len(header), 1)), string(behind), "%s: epochs and test.loss", name)
			line := lines.Append(nil, &r)
			require.Equal(t, 1, strings.Count(string(line), "\n"))
			for _, text := range []string{string(header), string(line)} {
				if text = strings.TrimSuffix(text, "\n"); text == "" {
					continue
				}
				if name == "CSV" && text == strings.TrimSuffix(string(header), "\n") {
					again.Forget() // the file was written again
				}
				require.True(t, strings.HasPrefix(text, lines.Start()) || name == "CSV" && text[0] >= '0' && text[0] <= '9', text)
				step, isRow, err := again.Read([]byte(text))
				require.NoError(t, err)
				if isRow {
					steps = append(steps, step)
				}
			}
			header, _ = lines.Widen(&r)
			require.Empty(t, header, "no new column")
		}
		require.Equal(t, []int64{1, 2}, steps, name)
	}
}

func TestLines_refuse(t *testing.T) {
	for line, want := range map[string]string{`[{"elapsed.steps":1}]`: "want one object", `{"elapsed.steps":1}{"elapsed.steps":2}`: "want one object", `{"train.loss":1}`: "no elapsed.steps", `{"elapsed.steps":1,`: "EOF"} {
		_, _, err := JSONLines().Read([]byte(line))
		require.ErrorContains(t, err, want, line)
	}
	lines := CSVLines()
	_, _, err := lines.Read([]byte("train.loss"))
	require.ErrorContains(t, err, "no column elapsed.steps")
	_, isRow, err := lines.Read([]byte("elapsed.steps,train.loss"))
	require.NoError(t, err)
	require.False(t, isRow)
	_, _, err = lines.Read([]byte("1"))
	require.EqualError(t, err, "want 2 cells, got 1")
	_, _, err = lines.Read([]byte("x,1"))
	require.ErrorContains(t, err, "want an integer of 64 bits")
}
