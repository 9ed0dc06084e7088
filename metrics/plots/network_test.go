package plots_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestNetwork(t *testing.T) {
	d := svgOf(t, plots.Network(plots.Block{Name: "x", Kind: "input", Shape: "Float32 [32, 4]"},
		plots.Block{Name: "0", Kind: "Residual", Shape: "Float32 [32, 8]", Size: 12345, From: []int{0},
			Parts: []plots.Block{{Name: "0/0", Kind: "Dense", Size: 12345}}},
		plots.Block{Name: "1", Kind: "Dense", From: []int{1, 0}, Size: 9}))
	require.Equal(t, []string{"Network", "Float32 [32, 4]", "x  input", "Float32 [32, 8]", "0  Residual",
		"12,345 parameters",
		"12,345", "0/0  Dense", "1  Dense", "9 parameters"}, words(d.texts))
	arrows := 0
	for _, l := range d.lines {
		arrows += btoi(l.colour == "#767676")
	}
	require.Equal(t, 3, arrows)
	long := []plots.Block{{}}
	for i := range 1900 {
		long = append(long, plots.Block{From: []int{i}})
	}
	require.NoError(t, plots.Network(long...).Err())
	require.ErrorContains(t, plots.Network(long...).PNG(io.Discard), "write an SVG")
	require.ErrorContains(t, plots.Network(append(long, long...)...).Err(), "more than 2000 layers")
	require.ErrorContains(t, plots.Network().Err(), "no blocks")
	require.ErrorContains(t, plots.Network(plots.Block{From: []int{0}}).Err(), "does not come before it")
	require.ErrorContains(t, plots.Network(plots.Block{Parts: []plots.Block{{From: []int{0}}}}).Err(), "leave From out")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
