package hlo_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// erfOf runs the error function on x, a slice of n numbers.
func erfOf(t *testing.T, plain bool, x, into any, dtype dtypes.DType, n int) {
	t.Helper()
	d := open(t)
	b := hlo.New("erf", d.compile)
	if plain {
		b.Plain()
	}
	f, shape := b.Main(), shapes.Make(dtype, n)
	in, err := f.Parameter("x", shape, nil)
	require.NoError(t, err)
	y, err := f.(*hlo.Function).Erf(in)
	require.NoError(t, err)
	require.NoError(t, f.Return([]compute.Value{y}, nil))
	program, err := b.Compile()
	require.NoError(t, err)
	require.Equal(t, !plain, strings.Contains(d.last.Text(), "chlo."))
	given, err := d.BufferFromFlatData(0, x, shape)
	require.NoError(t, err)
	outputs, err := program.Execute([]compute.Buffer{given}, []bool{false}, 0)
	require.NoError(t, err)
	require.NoError(t, outputs[0].ToFlatData(into))
}

// The error function in plain StableHLO is as exact as XLA's own.
func TestR34_erfInPlainStableHLO(t *testing.T) {
	const n = 1 << 16
	x, plain, own := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = (float64(i)/n - 0.5) * 16
	}
	x[0], x[1], x[2], x[3], x[4] = math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e-310
	narrow, narrowPlain, narrowOwn := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		narrow[i] = float32(x[i])
	}
	erfOf(t, true, x, plain, dtypes.Float64, n)
	erfOf(t, false, x, own, dtypes.Float64, n)
	erfOf(t, true, narrow, narrowPlain, dtypes.Float32, n)
	erfOf(t, false, narrow, narrowOwn, dtypes.Float32, n)
	worst, worst32 := 0.0, 0.0
	for i, x := range x {
		want := math.Erf(x)
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(plain[i]) && math.IsNaN(float64(narrowPlain[i])))
			continue
		}
		require.LessOrEqual(t, max(math.Abs(plain[i]), math.Abs(float64(narrowPlain[i]))), 1.0, "erf(%g)", x)
		require.Equal(t, math.Signbit(x), math.Signbit(plain[i]))
		if math.Abs(x) > 1e-300 && want != 0 {
			worst = max(worst, math.Abs(plain[i]/want-1), math.Abs(plain[i]-own[i]))
			worst32 = max(worst32, math.Abs(float64(narrowPlain[i])/math.Erf(float64(narrow[i]))-1), math.Abs(float64(narrowPlain[i]-narrowOwn[i])))
		}
	}
	require.Less(t, worst, 1e-15)
	require.Less(t, worst32, 5e-7)

	halves, bytes := []float16.Float16{float16.FromFloat32(0.5)}, []bfloat16.BFloat16{bfloat16.FromFloat32(0.5)}
	erfOf(t, true, halves, halves, dtypes.Float16, 1)
	erfOf(t, true, bytes, bytes, dtypes.BFloat16, 1)
	require.InDelta(t, math.Erf(0.5), float64(halves[0].Float32()), 1e-3)
	require.InDelta(t, math.Erf(0.5), float64(bytes[0].Float32()), 4e-3)
	t.Logf("largest difference from erf and from XLA's: %.1e in float64, %.1e in float32", worst, worst32)
}
