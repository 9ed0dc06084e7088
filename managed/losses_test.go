package managed_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
)

// sequences are 2 sequences of 3 labels, -1 where they are filled up, with logits of 2 classes. A logit that does not
// count is NaN.
func sequences() data.Batch {
	nan := float32(math.NaN())
	return data.Batch{Size: 2, Fields: []data.Field{
		data.Named("logits", []float32{0, 1, 2, 0, nan, nan, 0, 0, nan, 1, nan, 3}, 2, 3, 2),
		data.Named("labels", []int32{1, 1, -1, 0, -1, -1}, 2, 3),
		data.Named("mask", []float32{1, 1, 0, 1, 0, 0}, 2, 3),
		data.Named("none", make([]float32, 6), 2, 3),
	}}
}

func TestMaskedCrossEntropy(t *testing.T) {
	r := plugintest.CPU(t)
	step := managed.TestStep(func(b *managed.Builder) {
		labels, logits := b.Field("labels"), b.Field("logits")
		each := losses.CrossEntropy(labels, logits)
		b.Output("each", each)
		b.Metric("masked", losses.MaskedMean(each, b.Field("mask")))
		b.Metric("truth", losses.MaskedMean(each, graph.GreaterOrEqual(labels, graph.ZerosLike(labels))))
		b.Metric("doubled", losses.MaskedMean(each, graph.MulScalar(b.Field("mask"), 2)))
		b.Metric("none", losses.MaskedMean(each, b.Field("none")))
		first := func(n *graph.Node) *graph.Node { return graph.Slice(n, graph.AxisRange(), graph.AxisRange(0, 1)) }
		b.Metric("mean", graph.ReduceAllMean(losses.CrossEntropy(first(labels), first(logits)))) // [2, 1] and [2, 1, 2]
		b.Metric("accuracy", graph.ReduceAllMean(losses.Accuracy(first(labels), first(logits))))
	})
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	_, logs, err := step.Step(t.Context(), newState(t, r), sequences())
	require.NoError(t, err)
	want := []float64{math.Log1p(math.Exp(-1)), math.Log1p(math.Exp(2)), 0, math.Ln2, 0, 0}
	each, err := managed.Array(logs, "each")
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, each.Dims)
	for _, i := range []int{0, 1, 3} {
		require.InDelta(t, want[i], each.Flat.([]float32)[i], 1e-6)
	}
	mean := (want[0] + want[1] + want[3]) / 3
	for name, want := range map[string]float64{"masked": mean, "truth": mean, "doubled": mean, "none": 0, "mean": (want[0] + want[3]) / 2, "accuracy": 1} {
		require.InDelta(t, want, float(t, logs, name), 1e-6, name)
	}
}

func TestMaskedMean_refusesAnotherShape(t *testing.T) {
	step := managed.TestStep(func(b *managed.Builder) {
		b.Metric("x", losses.MaskedMean(losses.CrossEntropy(b.Field("labels"), b.Field("logits")), b.Field("logits")))
	})
	_, _, err := step.Step(t.Context(), newState(t, plugintest.CPU(t)), sequences())
	require.ErrorContains(t, err, "MaskedMean: expected floating-point values and a mask of their dimensions, got values (Float32)[2, 3] and mask (Float32)[2, 3, 2]")
}

func TestArray(t *testing.T) {
	var logs loop.Logs
	logs.Metric("number", 1)
	logs.Output("text", "no array")
	for _, row := range []struct{ name, err string }{
		{"number", "managed: array: metrics.number is a single number: Logs.Float reads it"},
		{"text", "managed: array: outputs.text is a string, expected an output of Builder.Output"},
		{"nothing", "managed: array: loop: "},
	} {
		_, err := managed.Array(logs, row.name)
		require.ErrorContains(t, err, row.err)
	}
	_, err := managed.Array(logs, "nothing")
	require.ErrorIs(t, err, loop.ErrNoEntry)

	r := plugintest.CPU(t)
	step := managed.TestStep(func(b *managed.Builder) {
		b.Output("twice", graph.MulScalar(b.Field("x"), 2))
		b.Output("half", graph.ConvertDType(b.Field("x"), dtypes.BFloat16))
	})
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	_, logs, err = step.Step(t.Context(), newState(t, r), data.Batch{Size: 2, Fields: []data.Field{data.X([]float32{1, 2}, 2, 1)}})
	require.NoError(t, err)
	for range 2 { // each a copy of its own
		a, err := managed.Array(logs, "outputs.twice")
		require.NoError(t, err)
		require.Equal(t, data.Array{Flat: []float32{2, 4}, Dims: []int{2, 1}}, a)
		a.Flat.([]float32)[0] = 9
	}
	_, err = managed.Array(logs, "half")
	require.ErrorContains(t, err, "graph.ConvertDType")
}
