package plots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// A share is rounded to all or nothing only where it is that.
func TestConfusion_roundsToNeitherEnd(t *testing.T) {
	d := svgOf(t, plots.Confusion([][]int{{1069399, 366}, {0, 1}}, []string{"a", "b"}))
	require.Contains(t, d.texts, "1069400 of 1069766 examples are right (>99.9%)")
	d = svgOf(t, plots.Confusion([][]int{{9999, 1}, {0, 10000}}, []string{"a", "b"}))
	for _, text := range []string{"19999 of 20000 examples are right (>99.9%)", ">99.9%", "<0.1%", "0.0%", "100.0%"} {
		require.Contains(t, d.texts, text)
	}
	grey, err := plots.Image([]float32{0}, 1, 1, 1, 0, 1)
	require.NoError(t, err)
	d = svgOf(t, plots.Samples(plots.Sample{Image: grey, Predicted: "a", Probability: 0.99999},
		plots.Sample{Image: grey, Predicted: "a", Probability: 1e-9}))
	require.Equal(t, []string{"Samples", "a (>99.9%)", "a (<0.1%)"}, words(d.texts))
}
