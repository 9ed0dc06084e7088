package report_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// A model that is not built has no diagram.
func TestNetwork(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	require.ErrorContains(t, report.Network(m).Err(), "no blocks")
	batch := must.M1(data.Peek(must.M1(data.New(data.X([]float32{1}, 1, 1), data.Y([]float32{1}, 1, 1))).Batches(1).All()))
	require.NoError(t, m.Init(t.Context(), batch))
	require.NoError(t, report.Network(m).Err())
}
