package hlo_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// The bits stay through each type and back; a wider type takes the last axis.
func TestBitcast(t *testing.T) {
	x := []float32{1, float32(math.Copysign(0, -1)), float32(math.Inf(1)), math.Float32frombits(0x7fc00001)}
	out := graph.MustExecOnceN(open(t), func(x *graph.Node) []*graph.Node {
		halves := graph.Bitcast(x, dtypes.Uint16)
		pairs := graph.Bitcast(graph.Reshape(x, 2, 2), dtypes.Complex64)
		return []*graph.Node{
			graph.Bitcast(x, dtypes.Uint32), halves, graph.Bitcast(graph.Bitcast(halves, dtypes.Float32), dtypes.Uint32),
			graph.Imag(pairs), graph.Bitcast(graph.Bitcast(pairs, dtypes.Float32), dtypes.Uint32),
			graph.Bitcast(graph.LessThan(x, graph.ScalarOne(x.Graph(), x.DType())), dtypes.Uint8),
		}
	}, x)
	require.Equal(t, []uint32{0x3f800000, 0x80000000, 0x7f800000, 0x7fc00001}, out[0].Value())
	require.Equal(t, [][]uint16{{0, 0x3f80}, {0, 0x8000}, {0, 0x7f80}, {1, 0x7fc0}}, out[1].Value())
	require.Equal(t, out[0].Value(), out[2].Value())
	require.Equal(t, uint32(0x80000000), math.Float32bits(out[3].Value().([]float32)[0]))
	require.Equal(t, [][]uint32{{0x3f800000, 0x80000000}, {0x7f800000, 0x7fc00001}}, out[4].Value())
	require.Equal(t, []uint8{0, 1, 0, 0}, out[5].Value())
}
