package managed_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/managed"
)

// requireSame requires the same variables of two states, floating-point values within a tolerance and all others equal.
func requireSame(t *testing.T, want, got *managed.State, tolerance float64) {
	t.Helper()
	require.Equal(t, want.Summary().Rows, got.Summary().Rows)
	for _, name := range want.Names() {
		x, err := want.Value(name)
		require.NoError(t, err)
		y, err := got.Value(name)
		require.NoError(t, err)
		if !x.DType().IsFloat() {
			require.True(t, x.Equal(y), name)
			continue
		}
		require.NoError(t, x.ConstFlatData(func(a any) {
			require.NoError(t, y.ConstFlatData(func(b any) {
				of, other := reflect.ValueOf(a), reflect.ValueOf(b)
				for i := range of.Len() {
					d := math.Abs(of.Index(i).Convert(reflect.TypeFor[float64]()).Float() - other.Index(i).Convert(reflect.TypeFor[float64]()).Float())
					require.LessOrEqual(t, d, tolerance, "%s, number %d", name, i)
				}
			}))
		}))
	}
}
