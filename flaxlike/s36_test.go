package flaxlike_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// A guess has the words that were written; an output of each place of a sequence is said to be one.
func TestS36_hints(t *testing.T) {
	_, err := losses.Named("sparse_crossentropy")
	require.ErrorContains(t, err, `did you mean "sparse_categorical_crossentropy"?`)
	set := must.M1(data.New(data.X(make([]float32, 24), 4, 3, 2), data.Y(make([]int32, 4), 4)))
	m := newModel(t, nn.Sequential{nn.LSTM{Units: 2}, nn.Dense{Units: 2}}, flaxlike.WithLoss(sparse))
	_, err = m.Evaluate(t.Context(), set)
	require.ErrorContains(t, err, "of sequences, take the state after the last place")
}

// Images without an axis of channels are not taken for sequences. A Reshape, which a file has too, or Causal decides.
func TestS36_imagesWithoutChannels(t *testing.T) {
	set := must.M1(data.New(data.X(make([]float32, 2*8*8), 2, 8, 8), data.Y(make([]int32, 2), 2)))
	of := func(before nn.Layer, causal bool) error {
		m := newModel(t, nn.Sequential{before, nn.Conv{Channels: 4, Window: []int{3}, Causal: causal}, nn.Flatten{}, nn.Dense{Units: 2}}, flaxlike.WithLoss(sparse))
		_, err := m.Evaluate(t.Context(), set)
		return err
	}
	require.ErrorContains(t, of(nn.Func(identity), false), "looks like images without an axis of channels, of which only one axis would be convolved: put "+
		"nn.Reshape{8, 8, 1} before it for images, nn.Reshape{8, 8} for sequences of 8 places with 8 numbers")
	require.NoError(t, of(nn.Reshape{8, 8, 1}, false))
	require.NoError(t, of(nn.Reshape{8, 8}, false))
	require.NoError(t, of(nn.Func(identity), true))
}
