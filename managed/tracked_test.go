package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
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

// R05: metrics of a padded batch cover the examples that count, also together with a scalar. A scalar computed from the
// batch includes the padding and is refused, as elsewhere.
func TestR05_trackedScalarsOfAPaddedBatch(t *testing.T) {
	batch := data.Batch{Size: 6, Fields: []data.Field{data.X([]float32{1, 2, 3, 4, 5, 6}, 6), data.Y([]float32{1, 1, 1, 1, 1, 1}, 6)}}
	padded, err := data.Pad(batch, 8)
	require.NoError(t, err)
	one := func(b *managed.Builder) *graph.Node { return graph.Scalar(b.Graph(), b.Field("x").DType(), 1) }
	for name, row := range map[string]struct {
		build managed.Build
		want  float64 // 0: it is refused
	}{
		"vector": {func(b *managed.Builder) { b.Track("it", metrics.Mean(), nil, b.Field("x")) }, 3.5},
		"vector, weighted": {func(b *managed.Builder) {
			b.Track("it", metrics.Mean(), graph.OnesLike(b.Field("x")), b.Field("x"))
		}, 3.5},
		"constant": {func(b *managed.Builder) { b.Track("it", metrics.Sum(), nil, one(b)) }, 1},
		"vector beside a constant": {func(b *managed.Builder) {
			b.Track("it", firstInput{metrics.Mean()}, nil, b.Field("x"), one(b))
		}, 3.5},
		"vector beside a scalar of the batch": {func(b *managed.Builder) {
			b.Track("it", firstInput{metrics.Mean()}, nil, b.Field("x"), graph.ReduceAllMean(b.Field("y")))
		}, 0},
		"mean of a scalar of the batch": {func(b *managed.Builder) { b.Track("it", metrics.Mean(), nil, graph.ReduceAllMean(b.Field("x"))) }, 0},
		"sum of a scalar of the batch":  {func(b *managed.Builder) { b.Track("it", metrics.Sum(), nil, graph.ReduceAllSum(b.Field("x"))) }, 0},
		"scalar by the mask": {func(b *managed.Builder) {
			x := b.Field("x")
			if mask := b.Mask(); mask != nil {
				x = graph.Where(mask, x, graph.ZerosLike(x))
			}
			b.Track("it", metrics.Sum(), nil, graph.ReduceAllSum(x))
		}, 21},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, plugintest.CPU(t))
			step := stepper(t, managed.TestStep(row.build))
			_, logs, err := step.Step(t.Context(), state, padded)
			if row.want == 0 {
				require.ErrorIs(t, err, managed.ErrPadded)
				require.ErrorContains(t, err, `"it" is (Float32)`)
				_, _, err = step.Step(t.Context(), state, batch)
				require.NoError(t, err, "without padding it is right")
				return
			}
			require.NoError(t, err)
			require.InDelta(t, row.want, float(t, logs, "it"), 1e-6)
		})
	}
}

// firstInput is a metric of its first input alone.
type firstInput struct{ metrics.Metric }

func (m firstInput) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	return m.Metric.Update(acc, weights, inputs[0])
}
