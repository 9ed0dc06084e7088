package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// A clone has the settings made on its state before the first step.
func TestClone_beforeTheFirstStep(t *testing.T) {
	r := plugintest.CPU(t)
	weights := tensors.FromValue([][]float32{{7}})
	state := newState(t, r, managed.WithOptimizer(sgd()), managed.WithSeed(5),
		managed.WithValues(map[string]*tensors.Tensor{"/dense/dense/weights": weights}), managed.DrawMissing(func(string) bool { return true }))
	require.NoError(t, state.SetLearningRate(0.25))
	clone, err := state.Clone(t.Context(), state.Strategy())
	require.NoError(t, err)
	defer func() { require.NoError(t, clone.Close()) }()
	require.NoError(t, state.SetLearningRate(0.5))
	rate, err := clone.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.25, rate)
	require.NoError(t, state.SetLearningRate(0.25))
	step := stepper(t, managed.TrainStep(regression))
	for _, s := range []*managed.State{clone, state} {
		turns(t, step, s, line(t, 64), 0, 3)
	}
	require.Equal(t, bits(t, state), bits(t, clone))
	require.NotEqual(t, float32(7), floats(t, state, "/dense/dense/weights")[0])
	require.InDelta(t, 7, floats(t, state, "/dense/dense/weights")[0], 3)
}
