package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn/losses"
)

// R11: what is tracked stays the caller's: a loss of the same list trains, with the gradient that it has without the
// metric.
func TestR11_trackedInputsKeepTheirGradient(t *testing.T) {
	var trained [2][]float32
	for i := range trained {
		state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
		step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			both := []*graph.Node{b.Field("y"), layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)}
			if i == 1 {
				b.Track("error", metrics.MeanSquaredError(), nil, both...)
			}
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(both[0], both[1])))
			b.Loss("second", graph.MulScalar(graph.ReduceAllSum(graph.Square(layers.Dense(b.Scope().In("other"), b.Field("x"), true, 1))), 0.01))
		}))
		_, _, err := step.Step(t.Context(), state, firstBatch(t))
		require.NoError(t, err)
		trained[i] = floats(t, state, "/dense/dense/weights")
	}
	require.Equal(t, trained[0], trained[1])
}

// firstInput is a metric of its first input alone.
type firstInput struct{ metrics.Metric }

func (m firstInput) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	return m.Metric.Update(acc, weights, inputs[0])
}
