package optim_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// raw has the batch as its gradient, and parameters that start at 0, so a step of rate 1 leaves minus the update.
func raw(b *managed.Builder) {
	g := b.Graph()
	x := graph.ReduceMean(b.Field("x"), 0)
	w := b.Scope().VariableWithValue("w", make([]float32, matrixSize)).NodeValue(g)
	v := b.Scope().VariableWithValue("b", make([]float32, size-matrixSize)).NodeValue(g)
	b.Loss("loss", graph.ReduceAllSum(graph.Mul(x, graph.Concatenate([]*graph.Node{w, v}, 0))))
}

// updateOf returns the update of a stateless chain for a gradient.
func updateOf(t *testing.T, chain ...optim.Transformation) func(t require.TestingT, gradient []float32) []float32 {
	t.Helper()
	state, step := newState(t, plugintest.CPU(t), optim.New(1, chain...)), trainStep(t, raw)
	train(t, step, state, []data.Batch{batchOf(t, make([]float32, size), 1)})
	s, err := state.Snapshot(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return func(t require.TestingT, gradient []float32) []float32 {
		require.NoError(t, s.Restore(background))
		train(t, step, state, []data.Batch{batchOf(t, gradient, 1)})
		update := parameters(t, state)
		for i := range update {
			update[i] = 0 - update[i]
		}
		return update
	}
}

func batchOf(t require.TestingT, x []float32, examples int) data.Batch {
	set, err := data.New(data.X(x, examples, len(x)/examples))
	require.NoError(t, err)
	for b, err := range set.Batches(examples).All() {
		require.NoError(t, err)
		return b
	}
	return data.Batch{}
}

func gradients(t *rapid.T) []float32 {
	scale := rapid.SampledFrom([]float32{1e-20, 1e-3, 1, 1e3, 1e15}).Draw(t, "scale")
	v := rapid.SliceOfN(rapid.Float32Range(-1, 1), size, size).Draw(t, "gradient")
	for i := range v {
		v[i] = normal(v[i] * scale)
	}
	return v
}

// normal flushes subnormal numbers to 0, as XLA does.
func normal(x float32) float32 {
	if math.Abs(float64(x)) < 1e-37 {
		return 0
	}
	return x
}

func normOf(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}
