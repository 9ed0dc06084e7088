package managed_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// holding is a state of some variables, which are not trained if their name says so.
func holding(t *testing.T, values map[string]any) *managed.State {
	t.Helper()
	state := newState(t, plugintest.CPU(t))
	one(t, stepper(t, managed.TestStep(func(b *managed.Builder) {
		for _, name := range []string{"a", "b", "c", "fixed"} {
			if value, ok := values[name]; ok {
				trained := value
				if f, ok := value.(fixedValue); ok {
					trained = f.value
				}
				v := b.Scope().VariableWithValue(name, trained)
				_, isFixed := value.(fixedValue)
				v.SetTrainable(!isFixed).NodeValue(b.Graph())
			}
		}
		b.Metric("x", b.Field("x"))
	})), state, ones(t, 1))
	return state
}

type fixedValue struct{ value any }

func TestCompare(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	type values = map[string]any
	for _, row := range []struct {
		name      string
		a, b      values
		tolerance float64
		structure string
		values    string
	}{
		{"the same", values{"a": 1.5, "b": []float32{1, 2}}, values{"a": 1.5, "b": []float32{1, 2}}, 0, "", ""},
		{"missing", values{"a": 1.0, "b": []float32{1, 2}}, values{"a": 1.0}, 0, "missing  /b  (Float32)[2]\n", ""},
		{"extra", values{"a": 1.0}, values{"a": 1.0, "b": []int64{1, 2}}, 0, "extra  /b  (Int64)[2]\n", ""},
		{"shape", values{"a": []float32{1, 2}}, values{"a": []float32{1}}, 0, "shape  /a  [2] and [1]\n", ""},
		{"dtype", values{"a": float32(1)}, values{"a": 1.0}, 0, "dtype  /a  Float32 and Float64\n", ""},
		{"trainable", values{"a": 1.0}, values{"a": fixedValue{1.0}}, 0, "trainable  /a  true and false\n", ""},
		{"all of it", values{"a": float32(1), "b": 1.0}, values{"a": fixedValue{[]float64{1}}, "c": 1.0}, 0,
			"shape      /a  [] and [1]\ndtype      /a  Float32 and Float64\ntrainable  /a  true and false\nmissing    /b  (Float64)\nextra      /c  (Float64)\n", ""},
		{"values", values{"a": []float32{1, 2, 3}}, values{"a": []float32{1, 2.5, 4}}, 0, "", "values  /a  2 of 3 numbers differ, by up to 1\n"},
		{"values within the tolerance", values{"a": []float32{1, 2, 3}}, values{"a": []float32{1, 2.5, 4}}, 1, "", ""},
		{"some within the tolerance", values{"a": []float32{1, 2, 3}}, values{"a": []float32{1, 2.5, 4}}, 0.75, "", "values  /a  1 of 3 numbers differ, by up to 1\n"},
		{"halves", values{"a": float16.FromNumbers(1, 2, 3)}, values{"a": float16.FromNumbers(1, 2.5, 3)}, 0, "", "values  /a  1 of 3 numbers differ, by up to 0.5\n"},
		{"halves of bfloat16", values{"a": []bfloat16.BFloat16{bfloat16.FromFloat32(1)}}, values{"a": []bfloat16.BFloat16{bfloat16.FromFloat32(3)}}, 0, "", "values  /a  1 of 1 numbers differ, by up to 2\n"},
		{"a NaN in both", values{"a": nan}, values{"a": nan}, 0, "", ""},
		{"a NaN in one", values{"a": []float64{nan, 1}}, values{"a": []float64{2, 1}}, 100, "", "values  /a  1 of 2 numbers differ, by up to NaN\n"},
		{"infinite in both", values{"a": inf}, values{"a": inf}, 0, "", ""},
		{"infinite in one", values{"a": inf}, values{"a": 1.0}, 100, "", "values  /a  1 of 1 numbers differ, by up to +Inf\n"},
		{"whole numbers have no tolerance", values{"a": []int64{1, 2}}, values{"a": []int64{1, 3}}, 10, "", "values  /a  1 of 2 numbers differ, by up to 1\n"},
		{"large ones too", values{"a": []uint64{1 << 63}}, values{"a": []uint64{1<<63 + 1}}, 10, "", "values  /a  1 of 1 numbers differ, by up to 0\n"},
		{"bools", values{"a": []bool{true, false}}, values{"a": []bool{true, true}}, 10, "", "values  /a  1 of 2 numbers differ, by up to 1\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := holding(t, row.a), holding(t, row.b)
			d := managed.Compare(a, b)
			require.Equal(t, row.structure, d.String())
			require.Equal(t, row.structure == "", d == nil)
			d, err := managed.CompareValues(t.Context(), a, b, row.tolerance)
			require.NoError(t, err)
			require.Equal(t, row.structure+row.values, d.String())
			require.Equal(t, row.structure+row.values == "", d == nil)
		})
	}
}

func TestCompare_refuses(t *testing.T) {
	a := holding(t, map[string]any{"a": float32(1)})
	_, err := managed.CompareValues(t.Context(), a, a, math.NaN())
	require.EqualError(t, err, "managed: compare: the tolerance is NaN, expected 0 or more")
	_, err = managed.CompareValues(t.Context(), a, nil, 0)
	require.EqualError(t, err, "managed: compare: a state is nil: make one with New")
	require.Len(t, managed.Compare(a, nil), 2, "a nil state has no variables")
	require.NoError(t, a.Close())
	require.Nil(t, managed.Compare(a, a))
	_, err = managed.CompareValues(t.Context(), a, a, 0)
	require.ErrorIs(t, err, managed.ErrClosed)
}

// A difference has the same size from either side, and is there if and only if one number was changed by more than the
// tolerance.
func TestCompareValues_law(t *testing.T) {
	a, b := holding(t, map[string]any{"a": []float32{0, 0, 0, 0}}), holding(t, map[string]any{"a": []float32{0, 0, 0, 0}})
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-1, 1), 4, 4).Draw(rt, "x")
		y := append([]float32{}, x...)
		at, by := rapid.IntRange(0, 3).Draw(rt, "at"), rapid.Float32Range(0, 1).Draw(rt, "by")
		y[at] += by
		tolerance := rapid.Float64Range(0, 1).Draw(rt, "tolerance")
		require.NoError(rt, a.SetValue("/a", tensors.FromValue(x)))
		require.NoError(rt, b.SetValue("/a", tensors.FromValue(y)))
		ab, err := managed.CompareValues(t.Context(), a, b, tolerance)
		require.NoError(rt, err)
		ba, err := managed.CompareValues(t.Context(), b, a, tolerance)
		require.NoError(rt, err)
		require.Equal(rt, ab, ba)
		moved := math.Abs(float64(y[at]) - float64(x[at]))
		require.Equal(rt, moved > tolerance, len(ab) == 1)
		if len(ab) == 1 {
			require.Equal(rt, managed.Discrepancy{Name: "/a", Aspect: managed.ValuesDiffer, Count: 1, Of: 4, Largest: moved}, ab[0])
		}
	})
}
