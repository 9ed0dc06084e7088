package managed_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

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
