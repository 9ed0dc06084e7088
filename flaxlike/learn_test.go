package flaxlike_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// learns trains a model on examples that it sees once each, and asks for its accuracy on the last 20 batches, over the
// seeds.
func learns(t *testing.T, steps int, rate float64, examples func(random *rand.Rand) (x, y []int32), network ...nn.Layer) {
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
		asked := func(_ *model.Scope, x *graph.Node) *graph.Node {
			return graph.Slice(x, graph.AxisRange(), graph.AxisRange(-len(ys)/n))
		}
		m := newModel(t, nn.Sequential(append(network, nn.Func(asked))), flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(rate), flaxlike.WithSeed(int64(seed)),
			flaxlike.WithMetrics(flaxlike.Metric{Name: "hits", Func: func(labels, output *graph.Node) *graph.Node {
				return graph.Equal(labels, graph.ArgMax(output, -1, labels.DType()))
			}}))
		start := time.Now()
		history, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{BatchSize: batch, InOrder: true, StepsPerEpoch: 10, Epochs: steps / 10}))
		require.NoError(t, err)
		hits := series(t, history, "hits")
		last := (hits[len(hits)-2] + hits[len(hits)-1]) / 2
		t.Logf("seed %d: accuracy %.4f behind %d steps, %.4f half way, %.1f s", seed, last, steps, hits[len(hits)/2], time.Since(start).Seconds())
		mean += last / seeds
		require.NoError(t, m.Close())
	}
	require.GreaterOrEqual(t, mean, 0.99)
}

// Associative recall: after four pairs of a key and a value comes one of the keys, whose value is the label.
//
//lazo:norace
func TestLearns_recallByAttention(t *testing.T) {
	const pairs, keys, values, width = 4, 8, 8, 64
	block := nn.Residual{nn.LayerNorm{}, nn.Attention{Heads: 4, Width: width / 4, Causal: true}}
	learns(t, recallSteps, 2e-3, func(random *rand.Rand) (x, y []int32) {
		chosen, asked := random.Perm(keys)[:pairs], random.IntN(pairs)
		for i, key := range chosen {
			value := int32(random.IntN(values))
			if x = append(x, int32(key), keys+value); i == asked {
				y = []int32{value}
			}
		}
		return append(x, int32(chosen[asked])), y
	}, nn.Embedding{Vocabulary: keys + values, Width: width, Initial: nn.RandomNormal(0.2)}, nn.Positions{Length: 2*pairs + 1},
		block, block, nn.LayerNorm{}, nn.Dense{Units: values})
}

// Copying: after four letters come four blanks, whose labels are the letters.
//
//lazo:norace
func TestLearns_copyByLSTM(t *testing.T) {
	const length, letters = 4, 8
	learns(t, copySteps, 5e-3, func(random *rand.Rand) (x, y []int32) {
		for range length {
			x = append(x, 1+int32(random.IntN(letters)))
		}
		for _, v := range x {
			y = append(y, v-1)
		}
		return append(x, make([]int32, length)...), y
	}, nn.Embedding{Vocabulary: letters + 1, Width: 16}, nn.LSTM{Units: 64}, nn.Dense{Units: letters})
}
