package plots_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestImportances(t *testing.T) {
	d := svgOf(t, plots.Importances(plots.Importance{Name: "less", Mean: -0.01, Deviation: 0.002}, plots.Importance{Name: "most", Mean: 0.5, Deviation: 0.1}, plots.Importance{Name: "tiny", Mean: 1e-5}))
	require.Equal(t, []string{"Importance", "most", "0.5000 ± 0.1000", "tiny", "1e-05 ± 0", "less", "-0.0100 ± 0.0020"}, slices.DeleteFunc(d.texts, func(s string) bool { return s == "" }))
	require.NoError(t, plots.Importances(plots.Importance{Name: "none"}).Err())
	require.ErrorContains(t, plots.Importances().Err(), "no features")
	require.ErrorContains(t, plots.Importances(make([]plots.Importance, 101)...).Err(), "101 features are more than the 100")
	require.ErrorContains(t, plots.Importances(plots.Importance{Name: "a", Mean: math.NaN()}).Err(), `feature "a" has the mean NaN`)
}
