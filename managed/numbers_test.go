package managed_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

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
