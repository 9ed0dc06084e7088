package plots_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestHistograms(t *testing.T) {
	nan := float32(math.NaN())
	d := svgOf(t, plots.Histograms(plots.Weights{Name: "0/kernel", Values: []float32{-1, 0, 0, 0, 1, nan}},
		plots.Weights{Name: "none", Values: []float32{nan}}))
	for _, text := range []string{"0/kernel", "6 weights", "1 not finite", "mean 0", "standard deviation 0.6325", "3",
		"none", "1 weight"} {
		require.Contains(t, d.texts, text)
	}
	require.ErrorContains(t, plots.Histograms().Err(), "no variables")
	require.ErrorContains(t, plots.Histograms(plots.Weights{Name: "x"}).Err(), `"x" has no numbers`)
}
