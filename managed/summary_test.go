package managed_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// B107: rows are sorted, an empty table keeps its header, the foot has the counts and the bytes, means and deviations
// come on request.
func TestB107_summary(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(adam()))
	require.Equal(t, `layer  variable  shape  dtype  size  bytes  kind

total  variables  size  bytes
all            0     0      0
`, state.Summary().String())
	step := stepper(t, managed.TrainStep(everything))
	turns(t, step, state, line(t, 64), 0, 1)
	sum := state.Summary()
	require.Equal(t, `layer                                    variable            shape  dtype    size  bytes  kind
/a/dense                                 weights             [1 8]  Float32     8     32  trainable
/b/dense                                 biases              [1]    Float32     1      4  trainable
                                         weights             [8 1]  Float32     8     32  trainable
/norm/batch_normalization                offset              [8]    Float32     8     32  trainable
                                         scale               [8]    Float32     8     32  trainable
/                                        samples             []     Int64       1      8  not trainable
/norm/batch_normalization                avg_weight          [8]    Float32     8     32  not trainable
`, head(sum.String(), 8))
	require.Equal(t, managed.Total{Variables: 5, Size: 33, Bytes: 132}, sum.Total(managed.Parameter))
	require.EqualValues(t, state.Parameters(), sum.Total(managed.Parameter).Size)
	require.Equal(t, managed.Total{Variables: 1, Size: 3, Bytes: 24}, sum.Total(managed.RandomState))
	require.EqualValues(t, 2, sum.Total(managed.MetricState).Variables, "a mean is a sum and a count")
	require.EqualValues(t, 10+3, sum.Total(managed.OptimizerState).Variables, "two moments each, the rate and two counters")
	require.EqualValues(t, 66+3, sum.Total(managed.OptimizerState).Size)
	require.Len(t, state.Names(), len(sum.Rows))
	all := managed.Total{}
	for _, k := range []managed.Kind{managed.Parameter, managed.Fixed, managed.OptimizerState, managed.MetricState, managed.RandomState} {
		of := sum.Total(k)
		all = managed.Total{Variables: all.Variables + of.Variables, Size: all.Size + of.Size, Bytes: all.Bytes + of.Bytes}
	}
	require.Equal(t, all, sum.Total())
	require.Equal(t, "layer     variable  shape  dtype    size  bytes  kind\n/a/dense  weights   [1 8]  Float32     8     32  trainable\n… 24 more\n", head(sum.Table(1), 3))
	require.Equal(t, "Kind(5)", managed.Kind(5).String())

	with, err := state.SummaryOfValues(t.Context())
	require.NoError(t, err)
	require.Len(t, with.Rows, len(sum.Rows))
	for _, row := range with.Rows {
		require.False(t, math.IsNaN(row.Mean), row.Name)
	}
	require.Contains(t, head(with.String(), 1), "  kind               mean")
	require.NoError(t, state.Close())
	_, err = state.SummaryOfValues(t.Context())
	require.ErrorIs(t, err, managed.ErrClosed)
	require.Equal(t, sum, state.Summary(), "it looks at no value")
	t.Logf("B107: %d rows, %d parameters, %d bytes", len(sum.Rows), sum.Total(managed.Parameter).Size, sum.Total().Bytes)
}

// head is the first lines of a text.
func head(text string, lines int) string {
	for i, r := range text {
		if r == '\n' {
			if lines--; lines == 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

// An optimizer that is a step's own is the optimizer's, wherever it has its variables.
func TestSummary_severalOptimizers(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(adam()))
	one(t, stepper(t, managed.TrainStep(slope)), state, ones(t, 2))
	one(t, stepper(t, managed.TrainStep(slope, managed.WithStepOptimizer("second", sgd()))), state, ones(t, 2))
	sum := state.Summary()
	require.EqualValues(t, 1, sum.Total(managed.Parameter).Variables)
	require.EqualValues(t, 0, sum.Total(managed.Fixed).Variables)
	require.EqualValues(t, len(sum.Rows)-2, sum.Total(managed.OptimizerState).Variables)
}

// Mean and deviation are those of NumPy's definition, for any type.
func TestSummary_moments(t *testing.T) {
	nan := math.NaN()
	for _, row := range []struct {
		name      string
		value     any
		mean, std float64
	}{
		{"float32", []float32{1, 2, 3, 4}, 2.5, 1.118033988749895},
		{"float64", [][]float64{{-1, 1}}, 0, 1},
		{"int32", []int32{2, 4}, 3, 1},
		{"uint64", []uint64{7}, 7, 0},
		{"bool", []bool{true, false, false, false}, 0.25, 0.4330127018922193},
		{"a scalar", float32(5), 5, 0},
		{"large numbers", []float64{1e308, 1e308}, 1e308, 0},
		{"a NaN", []float32{1, float32(nan)}, nan, nan},
		{"complex", []complex64{1}, nan, nan},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := holding(t, row.value)
			sum, err := state.SummaryOfValues(t.Context())
			require.NoError(t, err)
			require.Equal(t, "a", sum.Rows[0].Name)
			require.Equal(t, fmt.Sprint(row.mean, row.std), fmt.Sprint(sum.Rows[0].Mean, sum.Rows[0].Std)) // as text, for the NaN
		})
	}
	state := holding(t, []float32{0, 0, 0})
	rapid.Check(t, func(t *rapid.T) { // shifting moves the mean alone
		x := rapid.SliceOfN(rapid.Float32Range(-8, 8), 3, 3).Draw(t, "x")
		moments := func(x []float32) (mean, std float64) {
			require.NoError(t, state.SetValue("/a", tensors.FromValue(x)))
			sum, err := state.SummaryOfValues(context.Background())
			require.NoError(t, err)
			return sum.Rows[0].Mean, sum.Rows[0].Std
		}
		mean, std := moments(x)
		shifted, same := moments([]float32{x[0] + 4, x[1] + 4, x[2] + 4})
		require.InDelta(t, mean+4, shifted, 1e-5)
		require.InDelta(t, std, same, 1e-5)
	})
}

// Sizes have commas between the thousands.
//
//lazo:norace
func TestSummary_thousands(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	one(t, stepper(t, managed.TestStep(func(b *managed.Builder) {
		v := b.Scope().VariableWithShape("w", shapeOf(1234, 1000))
		b.Metric("w", graph.ReduceAllMean(v.NodeValue(b.Graph())))
	})), state, ones(t, 1))
	require.Contains(t, state.Summary().String(), "/      w          [1234 1000]  Float32  1,234,000  4,936,000  trainable")
}

// holding is a state of one variable.
func holding(t *testing.T, value any) *managed.State {
	t.Helper()
	state := newState(t, plugintest.CPU(t))
	one(t, stepper(t, managed.TestStep(func(b *managed.Builder) {
		b.Scope().VariableWithValue("a", value).NodeValue(b.Graph())
		b.Metric("x", b.Field("x"))
	})), state, ones(t, 1))
	return state
}
