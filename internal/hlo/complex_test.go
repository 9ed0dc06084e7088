package hlo_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestComplex_parts(t *testing.T) {
	z, x := []complex64{1 + 2i, -3i, 4}, []float32{5, -6}
	out := graph.MustExecOnceN(open(t), func(z, x *graph.Node) []*graph.Node {
		return []*graph.Node{graph.Real(z), graph.Imag(z), graph.Conj(z), graph.Complex(x, graph.Neg(x)), graph.Complex(graph.Real(z), graph.Imag(z))}
	}, z, x)
	for i, want := range []any{[]float32{1, 0, 4}, []float32{2, -3, 0}, []complex64{1 - 2i, 3i, 4}, []complex64{5 - 5i, -6 + 6i}, z} {
		require.Equal(t, want, out[i].Value(), "output %d", i)
	}
}
