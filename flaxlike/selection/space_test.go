package selection_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike/selection"
)

// The trials of a seed are the same, whatever else was drawn; a grid has all products; the budgets of halving add up.
func TestSearch_laws(t *testing.T) {
	space := []selection.Parameter{{Name: "a", Values: []any{"x", "y"}}, {Name: "b", Low: 2, High: 4, Integer: true}, {Name: "c", Low: 1e-4, High: 1, Log: true}, {Name: "d", Low: -1, High: 1}, {Name: "e", Low: 0, High: 100, Integer: true}}
	grid, err := selection.ValuesOf(selection.Search{Grid: 5, Space: space})
	require.NoError(t, err)
	require.Len(t, grid, 2*3*5*5*5)
	seen := map[string]bool{}
	for _, values := range grid {
		seen[fmt.Sprint(values...)] = true
	}
	require.Len(t, seen, len(grid))
	require.Equal(t, []any{"x", 2, 1e-4, -1.0, 0}, grid[0])
	require.Equal(t, []any{"y", 4, 1.0, 1.0, 100}, grid[len(grid)-1])
	require.InEpsilon(t, 0.01, grid[2*25][2], 1e-12)

	long, err := selection.ValuesOf(selection.Search{Trials: 500, Space: space, Seed: 11})
	require.NoError(t, err)
	short, err := selection.ValuesOf(selection.Search{Trials: 20, Space: space, Seed: 11})
	require.NoError(t, err)
	require.Equal(t, long[:20], short)
	other, err := selection.ValuesOf(selection.Search{Trials: 20, Space: space, Seed: 12})
	require.NoError(t, err)
	require.NotEqual(t, short, other)
	below, integers := 0, map[int]bool{}
	for _, values := range long {
		c, d := values[2].(float64), values[3].(float64)
		require.True(t, c >= 1e-4 && c <= 1 && d >= -1 && d <= 1, values)
		if c < 0.01 {
			below++
		}
		integers[values[1].(int)] = true
	}
	require.InDelta(t, 250, below, 50, "half of the logarithms are below 0.01")
	require.Equal(t, map[int]bool{2: true, 3: true, 4: true}, integers)
	all, err := selection.ValuesOf(selection.Search{Trials: 6, Space: []selection.Parameter{{Name: "a", Low: 1, High: 3, Integer: true}, {Name: "b", Values: []any{true, false}}}})
	require.NoError(t, err)
	require.Len(t, all, 6)

	for _, of := range []struct{ trials, epochs, factor int }{{27, 1, 3}, {9, 2, 3}, {10, 1, 2}, {1, 5, 4}, {81, 1, 3}, {100, 3, 4}} {
		rungs := selection.Rungs(selection.Search{Trials: of.trials, FirstEpochs: of.epochs, Factor: of.factor})
		trials, epochs := of.trials, of.epochs
		for _, r := range rungs {
			require.Equal(t, [2]int{trials, epochs}, r)
			trials, epochs = trials/of.factor, epochs*of.factor
		}
		require.Zero(t, trials)
	}
	require.Equal(t, [][2]int{{27, 1}, {9, 3}, {3, 9}, {1, 27}}, selection.Rungs(selection.Search{Trials: 27, FirstEpochs: 1, Factor: 3}))
}
