package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// What compares classes refuses an output of one, of which its figure would be constant.
func TestOneClassIsRefused(t *testing.T) {
	floats, err := data.New(data.X(make([]float32, 4), 4, 1), data.Y([]float32{0, 1, 0, 1}, 4, 1))
	require.NoError(t, err)
	zeros, err := data.New(data.X(make([]float32, 4), 4, 1), data.Y(make([]int32, 4), 4))
	require.NoError(t, err)
	refused := func(set *data.Set, what string, option flaxlike.Option) {
		t.Helper()
		m := newModel(t, nn.Func(identity), option)
		_, err := m.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, "has one class, whose probability is always 1")
	}
	for _, name := range []string{"categorical_crossentropy", "kl_divergence", "categorical_focal_crossentropy"} {
		refused(floats, name, flaxlike.WithLoss(name))
	}
	refused(zeros, sparse, flaxlike.WithLoss(sparse))
	refused(zeros, masked, flaxlike.WithLoss(masked))
	for _, name := range []string{"crossentropy", "perplexity", "categorical_accuracy", "sparse_categorical_accuracy", "top_5_accuracy", "categorical_crossentropy"} {
		refused(floats, name, flaxlike.WithMetrics(name))
	}
}

// A row of zeros has loss 0, and class 0 in the accuracy, and counts in both means, as in Keras 3.15.
func TestLabels_rowOfZeros(t *testing.T) {
	set, err := data.New(data.X([]float32{9, 1, 0, 1, 8, 1, 0, 9, 0}, 3, 3), data.Y([]float32{0, 0, 0, 0, 1, 0, 1, 0, 0}, 3, 3))
	require.NoError(t, err)
	found, err := newModel(t, nn.Func(identity), flaxlike.WithLoss("categorical_crossentropy"), flaxlike.WithMetrics("accuracy")).Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 2./3, found["accuracy"], 1e-6)
	require.InDelta(t, 3.00068974, found["loss"], 1e-6)
}
