package report_test

import (
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// Of many variables the largest are drawn, and the page says so.
func TestWeights_areBounded(t *testing.T) {
	var layers nn.Sequential
	for range 31 {
		layers = append(layers, nn.Dense{Units: 2})
	}
	m := newModel(t, layers, flaxlike.WithLoss("mse"))
	batch := must.M1(data.Peek(must.M1(data.New(data.X([]float32{1, 2}, 1, 2), data.Y([]float32{1, 2}, 1, 2))).Batches(1).All()))
	require.NoError(t, m.Init(t.Context(), batch))
	texts, drawings := written(t, report.Run{Model: m})
	require.Contains(t, strings.Join(texts, "\n"), "60 of the 62 variables are drawn, those of the most numbers")
	require.Equal(t, 60+1, drawings)
}
