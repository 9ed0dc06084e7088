package report_test

import (
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
)

// The errors of each output are those of sklearn.metrics, and those of all are Evaluate's.
func TestNumbers(t *testing.T) {
	x := []float32{1, 10, 2, 30, 3.5, 20, 4, 45, 6, 50}
	y := []float32{1.5, 12, 2, 25, 3, 20, 5, 50, 5, 40}
	m := newModel(t, identity, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae", "rmse", "r2"))
	test := must.M1(data.New(data.X(x, 5, 2), data.Y(y, 5, 2)))
	texts, drawings := written(t, report.Run{Model: m, Test: test})
	require.Equal(t, []string{"0.6", "0.707107", "0.768519"}, cells(texts, "Regression", 0, "output 1")[:3])
	require.Equal(t, []string{"4.4", "5.54977", "0.837416"}, cells(texts, "Regression", 0, "output 2")[:3])
	figures, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.Equal(t, []string{sixDigits(figures["mae"]), sixDigits(figures["rmse"]), sixDigits(figures["r2"])}, cells(texts, "Regression", 0, "all outputs")[:3])
	require.Equal(t, 2*3+1+1, drawings, "of each output, importance, network")
	require.Contains(t, strings.Join(texts, "\n"), "How far the mean R² of the outputs (0.803) falls")
}
