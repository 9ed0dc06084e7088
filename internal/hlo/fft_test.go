package hlo_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// The transforms are the sums of their definition, and the inverses divide.
func TestFFT_isTheSum(t *testing.T) {
	const n = 6
	r := rand.New(rand.NewPCG(1, 2))
	z, x := make([]complex64, n), make([]float32, n)
	for i := range n {
		z[i], x[i] = complex(float32(r.NormFloat64()), float32(r.NormFloat64())), float32(r.NormFloat64())
	}
	out := graph.MustExecOnceN(open(t), func(z, x *graph.Node) []*graph.Node {
		whole, half := graph.FFT(z), graph.RealFFT(x)
		return []*graph.Node{whole, half, graph.InverseFFT(whole), graph.InverseRealFFT(half)}
	}, z, x)
	at := func(of func(i int) complex128, k int) (sum complex128) {
		for i := range n {
			sum += of(i) * cmplx.Exp(complex(0, -2*math.Pi*float64(i*k)/n))
		}
		return sum
	}
	whole, half := out[0].Value().([]complex64), out[1].Value().([]complex64)
	require.Len(t, half, n/2+1)
	for k := range n {
		require.InDelta(t, 0, cmplx.Abs(complex128(whole[k])-at(func(i int) complex128 { return complex128(z[i]) }, k)), 1e-5)
		require.InDelta(t, 0, cmplx.Abs(complex128(out[2].Value().([]complex64)[k]-z[k])), 1e-5)
	}
	for k := range half {
		require.InDelta(t, 0, cmplx.Abs(complex128(half[k])-at(func(i int) complex128 { return complex(float64(x[i]), 0) }, k)), 1e-5)
	}
	require.InDeltaSlice(t, x, out[3].Value().([]float32), 1e-5)
}
