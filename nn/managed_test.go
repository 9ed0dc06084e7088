package nn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// tagger is a step with a layer of each kind.
func tagger(b *managed.Builder) {
	s, ids, n, y := b.Scope(), b.Field("x"), b.Field("n"), b.Field("y")
	tokens := nn.Embedding{Vocabulary: 11, Width: 8, Padding: new(0)}
	x := tokens.Apply(s.In("tokens"), ids)
	x = nn.Positions{Length: 3}.Apply(s.In("positions"), x)
	x = nn.Conv{Channels: 8, Window: []int{3}}.Apply(s.In("conv"), x)
	x = nn.LayerNorm{}.Apply(s.In("norm"), x)
	x = graph.Add(x, nn.Attention{Heads: 4, KeyHeads: 2, Mask: n, Rotary: 1e4}.Apply(s.In("attention"), x))
	x = nn.RMSNorm{}.Apply(s.In("rms"), x)
	x = nn.LSTM{Units: 8, Mask: n}.Apply(s.In("lstm"), x)
	x = nn.GRU{Units: 8, Mask: n}.Apply(s.In("gru"), nn.GroupNorm{Groups: 2}.Apply(s.In("group"), x))
	logits := tokens.Logits(s.Shared("tokens"), x)
	counts := nn.MaskOf(nn.Masked(ids, n))
	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(y, b.ToOutputType(logits)), counts))
}

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

// A scope's penalty on weights (regularizer.ParamL2) applies only to kernels, as with GoMLX's layers.
func TestPenalty(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(func(b *managed.Builder) {
		s := b.Scope().In("dense")
		s.SetParam(regularizer.ParamL2, 0.5)
		y := nn.Dense{Units: 3, Kernel: nn.Constant(2), Bias: nn.Initial("ones")}.Apply(s, b.Field("x"))
		b.Loss("loss", graph.ReduceAllMean(y))
	})
	defer func() { require.NoError(t, step.Close()) }()
	set := must.M1(data.New(data.X([]float32{1, 2}, 1, 2)))
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(1))
	require.NoError(t, err)
	_, penalty, err := result.History.Series("aux_loss")
	require.NoError(t, err)
	require.Equal(t, []float64{0.5 * 6 * 4}, penalty)
}

// A step transposes queries, keys and values, but never their products, which are larger.
func TestAttention_turnsNoProducts(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	const batch, places, heads, width = 2, 13, 3, 4
	step := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(graph.Square(nn.Attention{Heads: heads, Causal: true}.Apply(b.Scope(), b.Field("x")))))
	})
	defer func() { require.NoError(t, step.Close()) }()
	set := must.M1(data.New(data.X(make([]float32, batch*places*heads*width), batch, places, heads*width)))
	for b, err := range set.Batches(batch).All() {
		require.NoError(t, err)
		program, err := step.Program(t.Context(), state, b)
		require.NoError(t, err)
		turned := 0
		for line := range strings.Lines(program.StableHLO()) {
			if strings.Contains(line, "stablehlo.transpose") {
				turned++
				require.LessOrEqual(t, strings.Count(line, fmt.Sprint(places, "x")), 2, line) // one place of the operand, one of the result
			}
		}
		require.NotZero(t, turned)
	}
}
