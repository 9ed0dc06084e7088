package flaxlike_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

func jit(t testing.TB) strategies.Strategy {
	t.Helper()
	return strategies.Jit(plugintest.CPU(t))
}

func newModel(t testing.TB, n nn.Layer, options ...flaxlike.Option) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(context.Background(), n, append([]flaxlike.Option{flaxlike.WithStrategy(jit(t))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// line is y = 3x + 1.
func line(t testing.TB, n int, more ...data.Field) *data.Set {
	t.Helper()
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%16)/8 - 1
		y[i] = 3*x[i] + 1
	}
	set, err := data.New(append([]data.Field{data.X(x, n, 1), data.Y(y, n, 1)}, more...)...)
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

func digits(t testing.TB) (training, test *data.Set) {
	t.Helper()
	training, test, err := data.Digits()
	require.NoError(t, err)
	return training, test
}

func first(t testing.TB, set *data.Set, size int) data.Batch {
	t.Helper()
	for b, err := range set.Batches(size).All() {
		require.NoError(t, err)
		return b
	}
	return data.Batch{}
}

func mlp() nn.Layer {
	return nn.Sequential{nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}}
}

const sparse = "sparse_categorical_crossentropy"

func series(t testing.TB, h *loop.History, name string) []float64 {
	t.Helper()
	_, values, err := h.Series(name)
	require.NoError(t, err)
	return values
}

func float(t testing.TB, logs loop.Logs, name string) float64 {
	t.Helper()
	v, err := logs.Float(name)
	require.NoError(t, err)
	return v
}

// values are all variables of the network's.
func values(t testing.TB, m *flaxlike.Model) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range m.Names() {
		if len(name) > 7 && name[:7] == "/model/" {
			v, err := m.Value(name)
			require.NoError(t, err)
			all[name] = v.GoStr()
		}
	}
	return all
}

// output is an output of a prediction, the only one without a name.
func output(t *testing.T, p flaxlike.Prediction, name ...string) data.Array {
	t.Helper()
	a, err := p.Output(name...)
	require.NoError(t, err)
	return a
}

// predictor is a model, or an ensemble.
type predictor interface {
	Predict(ctx context.Context, set *data.Set, options ...loop.Option) (flaxlike.Prediction, error)
}

func probabilitiesOf(t *testing.T, m predictor, set *data.Set, name ...string) (data.Array, error) {
	t.Helper()
	p, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	return p.Probabilities(name...)
}

func classesOf(t *testing.T, m predictor, set *data.Set, thresholds ...float64) (data.Array, error) {
	t.Helper()
	p, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	return p.WithThresholds(thresholds...).Classes()
}
