package nn_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// All layers learn, with the same numbers under Eager, and in bfloat16 with a policy.
func TestStrategies(t *testing.T) {
	var x, y, lengths []int32
	const n, places = 16, 3
	for i := range int32(n * places) {
		x = append(x, (i*7+i/5)%10+1)
		y = append(y, (i*7+i/5)%10+1)
	}
	for i := range int32(n) {
		lengths = append(lengths, i%places+1)
	}
	set := must.M1(data.New(data.X(x, n, places), data.Y(y, n, places), data.Field{Name: "n", Array: data.Array{Flat: lengths, Dims: []int{n}}}))
	run := func(t *testing.T, s strategies.Strategy, steps int, options ...managed.Option) []float64 {
		state, err := managed.New(s, append(options, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.05).Done())), managed.WithSeed(7))...)
		require.NoError(t, err)
		step := managed.TrainStep(tagger)
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(8), loop.Until(loop.Steps(steps)))
		require.NoError(t, err)
		_, losses, err := result.History.Series("loss")
		require.NoError(t, err)
		v, err := state.Value("/tokens/embeddings")
		require.NoError(t, err)
		require.Equal(t, dtypes.Float32, v.DType())
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
		return losses
	}
	want := run(t, strategies.Jit(plugintest.CPU(t)), 100)
	t.Logf("the loss goes from %.3f to %.3f", want[0], want[99])
	require.Less(t, want[99], want[0]*0.75)
	if eager {
		t.Run("eager", func(t *testing.T) {
			require.InDeltaSlice(t, want[:4], run(t, strategies.Eager(plugintest.CPU(t)), 4), 1e-4)
		})
	}
	t.Run("bfloat16", func(t *testing.T) {
		require.InDeltaSlice(t, want[:4], run(t, strategies.Jit(plugintest.CPU(t)), 4, managed.WithPolicy(optim.MixedBFloat16())), 0.05)
	})
}

// A window's answer is in its own units: another level and unit of the series changes the answer as the series.
func TestWindowScale(t *testing.T) {
	of := func(l nn.Layer, values []float32, dims ...int) []float32 {
		store := model.NewStore()
		x := tensors.FromFlatDataAndDimensions(values, dims...)
		y, err := model.MustNewExec(plugintest.CPU(t), store, func(s *model.Scope, x *graph.Node) *graph.Node { return l.Apply(s, x) }).Call1(x)
		require.NoError(t, err)
		return tensors.MustCopyFlatData[float32](y)
	}
	first := nn.WindowScale{Layers: []nn.Layer{nn.LastStep{}}}
	// columns 2, 4, 6 (mean 4, deviation √8/√3) and 1, 1, 1; then 5, 5, 5 and 10, 30, 50 (mean 30, deviation √800/√3)
	x := []float32{2, 1, 4, 1, 6, 1, 5, 10, 5, 30, 5, 50}
	by := float32(math.Sqrt(1.5)) // the last value, scaled
	require.InDeltaSlice(t, []float32{6, 4, 5, 5 + by}, of(first, x, 2, 3, 2), 1e-4)
	second := nn.WindowScale{Of: 1, Layers: first.Layers}
	deviation := float32(math.Sqrt(800. / 3))
	require.InDeltaSlice(t, []float32{1 + by, 1, 30, 30 + by*deviation}, of(second, x, 2, 3, 2), 1e-4)

	forecast := nn.WindowScale{Layers: []nn.Layer{nn.Flatten{}, nn.Dense{Units: 2, Kernel: nn.Constant(0.3)}}}
	plain, other := []float32{1, 2, 5, 3, 4, 4}, []float32(nil)
	for _, v := range plain {
		other = append(other, 1000*v+5e4)
	}
	want := of(forecast, plain, 1, 6, 1)
	require.InDeltaSlice(t, []float32{1000*want[0] + 5e4, 1000*want[1] + 5e4}, of(forecast, other, 1, 6, 1), 0.5)
	require.InDeltaSlice(t, []float32{7, 7}, of(forecast, []float32{7, 7, 7, 7, 7, 7}, 1, 6, 1), 1e-5, "a constant window")
}
