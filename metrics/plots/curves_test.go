package plots_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// Of many classes the worst ten are drawn, and the legend says so.
func TestROC_ofManyClasses(t *testing.T) {
	c := plots.Classified{}
	for k := range 13 {
		c.Classes = append(c.Classes, fmt.Sprint("c", k))
		row := make([]float64, 13)
		row[k] = 1
		if k == 7 {
			row[k] = -1
		}
		c.Labels, c.Scores = append(c.Labels, k), append(c.Scores, row)
	}
	texts := svgOf(t, plots.ROC(c)).texts
	require.Contains(t, texts, "the 10 of 13 classes with the least area")
	require.Contains(t, texts, "c7 (AUC 0.000)")
	require.NotContains(t, texts, "c12 (AUC 1.000)")
}
