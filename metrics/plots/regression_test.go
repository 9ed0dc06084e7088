package plots_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// A million examples are a thousand dots; the figures are of all.
func TestRegression(t *testing.T) {
	var of []plots.Regressed
	for k := range 5 {
		r := plots.Regressed{Name: strings.Repeat("o", k+1), True: make([]float64, 100_000), Predicted: make([]float64, 100_000)}
		for i := range r.True {
			r.True[i] = float64(i % 1000)
			r.Predicted[i] = r.True[i] + float64(k)
		}
		of = append(of, r)
	}
	f := plots.Regression(of...)
	require.NoError(t, f.Err())
	d := svgOf(t, f)
	require.Less(t, d.counts["path"], 3*2*1050+200)
	require.Contains(t, d.texts, "Dots are 1000 of the 100000 examples, evenly spaced. 3 of 5 outputs are drawn.")
	require.Contains(t, d.texts, "o: predicted and true")
	require.Contains(t, d.texts, "ooooo: residuals")
	require.NotContains(t, d.texts, "oo: residuals")
	var page bytes.Buffer
	require.NoError(t, f.HTML(&page))
	require.Contains(t, page.String(), `<th>oo</th><td class="number">1</td><td class="number">1</td><td class="number">0.999988</td>`)
	require.Contains(t, page.String(), `<th>all outputs</th><td class="number">2</td><td class="number">2.44949</td>`)

	nan := math.NaN()
	require.NoError(t, plots.Regression(plots.Regressed{True: []float64{1, nan}, Predicted: []float64{1, math.Inf(1)}}).Err(), "of a model that has diverged")
	require.ErrorContains(t, plots.Regression().Err(), "no outputs")
	require.ErrorContains(t, plots.Regression(plots.Regressed{}).Err(), "no examples")
	require.ErrorContains(t, plots.Regression(plots.Regressed{Name: "a", True: []float64{1}}).Err(), `output "a" has 1 true and 0 predicted numbers`)
}
