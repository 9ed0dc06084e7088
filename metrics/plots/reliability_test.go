package plots_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// The bins are (0, 0.1], (0.1, 0.2], …, with 0 in the first; scikit-learn's numbers are compared in package flaxlike.
func TestReliabilityOf(t *testing.T) {
	r, err := plots.ReliabilityOf([]bool{true, false, true, true, false}, []float64{0, 0.1, 0.3, 1, 0.30000000000000004}, 10)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 1, 1}, r.Counts)
	require.Equal(t, []float64{0.5, 1, 0, 1}, r.Shares)
	require.InDelta(t, (2*0.45+0.7+0.3)/5, r.Error, 1e-12)
	for want, row := range map[string]struct {
		p    []float64
		bins int
	}{
		"plots: reliability: 0 bins, expected 1 or more":                     {[]float64{0.5}, 0},
		"plots: reliability: 1 labels for 2 probabilities":                   {[]float64{0.5, 0.5}, 3},
		"plots: reliability: the probability of example 0 is 1.5, expected":  {[]float64{1.5}, 3},
		"plots: reliability: the probability of example 0 is NaN, expected ": {[]float64{math.NaN()}, 3},
	} {
		_, err := plots.ReliabilityOf([]bool{true}, row.p, row.bins)
		require.ErrorContains(t, err, want)
	}
}

func TestReliabilityDiagram(t *testing.T) {
	c := plots.Classified{Classes: []string{"no", "yes"}, Labels: []int{0, 1, 1, 0}, Scores: [][]float64{{0.9, 0.1}, {0.2, 0.8}, {0.3, 0.7}, {0.4, 0.6}}}
	has := func(f *plots.Figure, name string) {
		t.Helper()
		require.NoError(t, f.Err())
		require.True(t, slices.Contains(svgOf(t, f).texts, name), "%q", svgOf(t, f).texts)
	}
	has(plots.ReliabilityDiagram(c), "yes (ECE 0.300)")
	has(plots.ReliabilityDiagram(c, "no"), "no (ECE 0.300)")
	three := plots.Classified{Classes: []string{"a", "b", "c"}, Labels: []int{0, 1}, Scores: [][]float64{{0.5, 0.25, 0.25}, {0.5, 0.5, 0}}}
	has(plots.ReliabilityDiagram(three), "the likeliest class (ECE 0.000)")
	require.ErrorContains(t, plots.ReliabilityDiagram(c, "maybe").Err(), `there is no class "maybe"`)
	c.Scores[1] = []float64{-2, 3}
	require.ErrorContains(t, plots.ReliabilityDiagram(c).Err(), "the probability of example 1 is 3")
	c.Scores[1] = []float64{2, 3}
	require.ErrorContains(t, plots.ReliabilityDiagram(c).Err(), "the scores of example 1 are 5 together, expected probabilities")
}
