package flaxlike_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/nn"
)

// A NaN in an input is an error before the first step, with the field and the example, in Fit, Evaluate and Predict; a
// network that asks where they are takes them.
func TestS36_nanInInputs(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, float32(math.NaN()), 7, 8}
	set := must.M1(data.New(data.X(x, 4, 2), data.Y(make([]float32, 4), 4)))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	const want = `field "x": input NaN of example 2 in the`
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, want)
	require.ErrorIs(t, err, flaxlike.ErrValue)
	_, err = m.Evaluate(t.Context(), set)
	require.ErrorContains(t, err, want)
	_, err = m.Predict(t.Context(), set)
	require.ErrorContains(t, err, want)
	_, _, err = m.TrainStep(t.Context(), first(t, set, 4))
	require.ErrorContains(t, err, want)

	filled := newModel(t, nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		return nn.Dense{Units: 1}.Apply(scope, graph.Where(graph.IsNaN(x), graph.ZerosLike(x), x))
	}), flaxlike.WithLoss("mse"))
	_, err = filled.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err)
}

// A guess has the words that were written; an output of each place of a sequence is said to be one.
func TestS36_hints(t *testing.T) {
	_, err := losses.Named("sparse_crossentropy")
	require.ErrorContains(t, err, `did you mean "sparse_categorical_crossentropy"?`)
	set := must.M1(data.New(data.X(make([]float32, 24), 4, 3, 2), data.Y(make([]int32, 4), 4)))
	m := newModel(t, nn.Sequential{nn.LSTM{Units: 2}, nn.Dense{Units: 2}}, flaxlike.WithLoss(sparse))
	_, err = m.Evaluate(t.Context(), set)
	require.ErrorContains(t, err, "of sequences, take the state after the last place")
}

// Images without an axis of channels are not taken for sequences.
func TestS36_imagesWithoutChannels(t *testing.T) {
	set := must.M1(data.New(data.X(make([]float32, 2*8*8), 2, 8, 8), data.Y(make([]int32, 2), 2)))
	of := func(before nn.Layer) error {
		m := newModel(t, nn.Sequential{before, nn.Conv{Channels: 4, Window: []int{3}}, nn.Flatten{}, nn.Dense{Units: 2}}, flaxlike.WithLoss(sparse))
		_, err := m.Evaluate(t.Context(), set)
		return err
	}
	require.ErrorContains(t, of(nn.Func(identity)), "looks as images without an axis of channels")
	require.NoError(t, of(nn.Reshape{8, 8, 1}))
	require.NoError(t, of(nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Identity(x) })))
}
