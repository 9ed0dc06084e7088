package nn_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// learns trains a model on examples that it sees once each, and asks for its accuracy on the last 20 batches, over the
// seeds.
func learns(t *testing.T, rate float64, examples func(random *rand.Rand) (x, y []int32), logits func(s *nn.Scope, x *node) *node) {
	t.Helper()
	const batch = 64
	mean := 0.0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		var xs, ys []int32
		n := 0
		for range steps * batch {
			x, y := examples(random)
			xs, ys, n = append(xs, x...), append(ys, y...), n+1
		}
		set := must.M1(data.New(data.X(xs, n, len(xs)/n), data.Y(ys, n, len(ys)/n)))
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithSeed(int64(seed)), managed.WithOptimizer(optimizer.Adam().LearningRate(rate).Done()))
		require.NoError(t, err)
		step := managed.TrainStep(func(b *managed.Builder) {
			x, y := b.Node("x"), b.Node("y")
			l := logits(b.Scope(), x)
			l = graph.Slice(l, graph.AxisRange(), graph.AxisRange(-y.Shape().Dimensions[1]))
			b.Loss("loss", managed.CrossEntropy(y, l))
			b.Metric("accuracy", managed.Accuracy(y, l))
		})
		start := time.Now()
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(batch), loop.Until(loop.Steps(steps)))
		require.NoError(t, err)
		_, accuracy, err := result.History.Series("accuracy")
		require.NoError(t, err)
		last := 0.0
		for _, a := range accuracy[steps-20:] {
			last += a / 20
		}
		t.Logf("seed %d: accuracy %.4f behind %d steps, %.4f half way, %.1f s", seed, last, steps, accuracy[steps/2], time.Since(start).Seconds())
		mean += last / seeds
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	require.GreaterOrEqual(t, mean, 0.99)
}

// Associative recall: behind eight pairs of a key and a value comes one of the keys, and its value is to be told.
func TestLearns_recallByAttention(t *testing.T) {
	const pairs, keys, values, width = 8, 16, 8, 64
	learns(t, 2e-3, func(random *rand.Rand) (x, y []int32) {
		chosen, asked := random.Perm(keys)[:pairs], random.IntN(pairs)
		for i, key := range chosen {
			value := int32(random.IntN(values))
			if x = append(x, int32(key), keys+value); i == asked {
				y = []int32{value}
			}
		}
		return append(x, int32(chosen[asked])), y
	}, func(s *nn.Scope, ids *node) *node {
		x := nn.Embedding{Vocabulary: keys + values, Width: width, Initial: nn.RandomNormal(0.2)}.Apply(s.In("tokens"), ids)
		x = nn.Positions{Length: 2*pairs + 1}.Apply(s.In("positions"), x)
		for _, name := range []string{"0", "1"} {
			b := s.In("%s", "block_"+name)
			h := nn.LayerNorm{}.Apply(b.In("norm"), x)
			x = graph.Add(x, nn.Attention{Heads: 4, Causal: true}.Apply(b.In("attention"), h))
		}
		return nn.Dense{Units: values}.Apply(s.In("values"), nn.LayerNorm{}.Apply(s.In("norm"), x))
	})
}

// Copying: behind four letters come as many blanks, at which the letters are to be told.
func TestLearns_copyByLSTM(t *testing.T) {
	const length, letters = 4, 8
	learns(t, 5e-3, func(random *rand.Rand) (x, y []int32) {
		for range length {
			x = append(x, 1+int32(random.IntN(letters)))
		}
		for _, v := range x {
			y = append(y, v-1)
		}
		return append(x, make([]int32, length)...), y
	}, func(s *nn.Scope, ids *node) *node {
		x := nn.Embedding{Vocabulary: letters + 1, Width: 16}.Apply(s.In("letters"), ids)
		h, _ := nn.LSTM{Units: 64}.Apply(s.In("lstm"), x)
		return nn.Dense{Units: letters}.Apply(s.In("out"), h)
	})
}
