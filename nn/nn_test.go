package nn_test

import (
	"testing"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/nn"
)

// In training, recurrent dropout draws once for all places, and dropout between layers and on attention weights draws.
// A test has neither.
func TestDropout(t *testing.T) {
	build := func(training bool) [][]float32 {
		return call(t, normal(1, 2, 4, 8), func(s *model.Scope, x *node) []*node {
			s.Store().SetTraining(x.Graph(), training)
			plain := nn.LSTM{Units: 5, Layers: 2}.Apply(s.In("lstm"), x)
			between := nn.LSTM{Units: 5, Layers: 2, Dropout: 0.5}.Apply(s.Shared("lstm"), x)
			recurrent := nn.LSTM{Units: 5, Layers: 2, RecurrentDropout: 0.5}.Apply(s.At("lstm"), x)
			attention := nn.Attention{Heads: 2}.Apply(s.In("attention"), x)
			weights := nn.Attention{Heads: 2, Dropout: 0.5}.Apply(s.Shared("attention"), x)
			return []*node{plain, between, recurrent, attention, weights, nn.Dropout{Rate: 0.25}.Apply(s, x), x}
		})
	}
	test, training := build(false), build(true)
	require.Equal(t, test[0], test[1])
	require.Equal(t, test[0], test[2])
	require.Equal(t, test[3], test[4])
	require.Equal(t, test[5], test[6])
	require.NotEqual(t, training[0], training[1])
	require.InDeltaSlice(t, training[0][:5], training[2][:5], 1e-6, "the first place has no state yet")
	require.NotEqual(t, training[0], training[2])
	require.NotEqual(t, training[3], training[4])
	for i, v := range training[5] {
		if v != 0 {
			require.InDelta(t, training[6][i]/0.75, v, 1e-6)
		}
	}
}
