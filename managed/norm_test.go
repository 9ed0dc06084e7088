package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// GoMLX's own layer, which knows no padding, is refused where it would count it; a test step has averages, and takes
// both.
func TestR05_otherBatchNormIsRefused(t *testing.T) {
	batch, err := data.Pad(first(t, line(t, 6).Batches(6)), 8)
	require.NoError(t, err)
	build := normed(0, func(scope *model.Scope, x *graph.Node) *graph.Node {
		return norm.BatchNorm(scope, x, -1).Momentum(0.6).Epsilon(0.02).Done()
	})
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	_, _, err = stepper(t, managed.TrainStep(build)).Step(t.Context(), state, batch)
	require.ErrorContains(t, err, "norm.BatchNorm in /batch_normalization: the batch is padded")
	_, _, err = stepper(t, managed.TestStep(build)).Step(t.Context(), state, batch)
	require.NoError(t, err)
}
