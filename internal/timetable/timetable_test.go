package timetable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	got := Table("a run of 10 steps", []Row{
		{Name: "each step: train", Steps: []int64{1, 2, 3}, More: true, Block: 4},
		{Name: "once", Steps: []int64{5}},
		{Name: "first", Steps: []int64{1}, More: true},
	}, []Row{
		{Name: "epochs: test", Open: "epochs", Start: true, End: true},
		{Name: "late", Until: "10 steps"},
		{Name: "never"},
	})
	require.Equal(t, strings.TrimPrefix(`
a run of 10 steps
tasks
  1  each step: train  steps 1, 2, 3, …; in blocks of up to 4
  2  once              step 5
  3  first             steps 1, …
callbacks
  1  epochs: test  at the start; depends on epochs; at the end
  2  late          not in 10 steps
  3  never         never
`, "\n"), got)
	require.Equal(t, "empty\n", Table("empty", nil, nil))
}
