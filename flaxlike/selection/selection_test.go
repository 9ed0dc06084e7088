package selection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

const sparse = "sparse_categorical_crossentropy"

func jit(t testing.TB) strategies.Strategy {
	t.Helper()
	return strategies.Jit(plugintest.CPU(t))
}

func newModel(t testing.TB, n nn.Layer, options ...flaxlike.Option) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(t.Context(), n, append([]flaxlike.Option{flaxlike.WithStrategy(jit(t))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// line is y = 3x + 1.
func line(t testing.TB, n int) *data.Set {
	t.Helper()
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%16)/8 - 1
		y[i] = 3*x[i] + 1
	}
	set, err := data.New(data.X(x, n, 1), data.Y(y, n, 1))
	require.NoError(t, err)
	return set
}

// sorted is n examples of three classes that are easy to tell apart.
func sorted(t testing.TB, n int, more ...data.Field) *data.Set {
	t.Helper()
	x, y := make([]float32, 3*n), make([]int32, n)
	for i := range y {
		y[i] = int32(i % 3)
		x[3*i+i%3] = 1 + float32(i%5)/10
	}
	set, err := data.New(append([]data.Field{data.X(x, n, 3), data.Y(y, n)}, more...)...)
	require.NoError(t, err)
	return set
}

func first(t testing.TB, set *data.Set, size int) data.Batch {
	t.Helper()
	batch, err := data.Peek(set.Batches(size).All())
	require.NoError(t, err)
	return batch
}

// output is an output of a prediction, the only one without a name.
func output(t *testing.T, p flaxlike.Prediction, name ...string) data.Array {
	t.Helper()
	a, err := p.Output(name...)
	require.NoError(t, err)
	return a
}
