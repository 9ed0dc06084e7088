package plots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestForecasts(t *testing.T) {
	long := make([]float64, 5000)
	for i := range long {
		long[i] = float64(i % 9)
	}
	d := svgOf(t, plots.Forecasts(plots.Forecast{Name: "one", History: long, True: []float64{1, 2, 3}, Predicted: []float64{1, 2, 4}},
		plots.Forecast{Name: "two", True: []float64{1}, Predicted: []float64{1}}))
	for _, text := range []string{"Forecasts", "one", "history", "true", "predicted", "-200", "two"} {
		require.Contains(t, d.texts, text)
	}
	require.NotContains(t, d.texts, "-400", "the last 300 numbers")
	require.ErrorContains(t, plots.Forecasts().Err(), "there are none")
	require.ErrorContains(t, plots.Forecasts(make([]plots.Forecast, 61)...).Err(), "61 are more than the 60")
	require.ErrorContains(t, plots.Forecasts(plots.Forecast{Name: "a", True: []float64{1}}).Err(), `"a" has 1 true and 0 predicted numbers`)
}
