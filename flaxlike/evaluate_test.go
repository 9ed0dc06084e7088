package flaxlike_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// Weights of batches that come one by one, by which no example counts, are an error at the end of the first epoch and
// of an evaluation; a batch alone may have no example that counts.
func TestS36_weightsOfAStream(t *testing.T) {
	of := func(weights ...float32) loop.Source[data.Batch] {
		set := must.M1(data.New(data.X(make([]float32, 8), 8, 1), data.Y(make([]float32, 8), 8, 1), data.Named("weight", weights, 8)))
		return set.Batches(4)
	}
	none, some := of(0, 0, 0, 0, 0, 0, 0, 0), of(0, 0, 0, 0, 0, 0, 0, 1)
	const want = `field "weight": the sample weights of all examples so far are 0`
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("weight"))
	_, err := m.FitBatches(t.Context(), none, quiet(flaxlike.Fit{StepsPerEpoch: 2, Epochs: 2}))
	require.ErrorContains(t, err, want)
	require.ErrorIs(t, err, flaxlike.ErrValue)
	_, err = m.EvaluateBatches(t.Context(), loop.Data[data.Batch](none.(data.Batches).All()))
	require.ErrorContains(t, err, want)
	_, err = m.FitBatches(t.Context(), some, quiet(flaxlike.Fit{StepsPerEpoch: 2, ValidationBatches: none}))
	require.ErrorContains(t, err, want)
	_, err = m.FitBatches(t.Context(), some, quiet(flaxlike.Fit{StepsPerEpoch: 2, Epochs: 2, ValidationBatches: some}))
	require.NoError(t, err)
}
