package xla_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// A product whose sides are swapped for the CPU has the same result.
func TestCompile_productWithChangedSides(t *testing.T) {
	const m, k, n = 3, 16, 128
	r := plugintest.CPU(t)
	shape := func(rows int) shapes.Shape { return shapes.Make(dtypes.Float32, rows, n) }
	p, err := r.Compile("product", func(g *graph.Graph) xla.Built {
		x, y := graph.Parameter(g, "x", shape(m)), graph.Parameter(g, "y", shape(k))
		return xla.Built{Outputs: []*graph.Node{graph.DotGeneral(x, []int{1}, nil, y, []int{1}, nil)}}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.Contains(t, p.StableHLO(), "optimization_barrier")
	numbers := func(rows int) (values []float32) {
		for i := range rows * n {
			values = append(values, float32(i*7%13-6)) // small integers: exact in any order
		}
		return values
	}
	x, y := numbers(m), numbers(k)
	args := make([]compute.Buffer, 2)
	for i, values := range [][]float32{x, y} {
		args[i], err = r.BufferFromFlatData(0, values, shape(len(values)/n))
		require.NoError(t, err)
		defer func() { require.NoError(t, args[i].Finalize()) }()
	}
	outputs, err := p.Run(args, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, outputs[0].Finalize()) }()
	got := make([]float32, m*k)
	require.NoError(t, outputs[0].ToFlatData(got))
	for i := range m {
		for j := range k {
			var sum float32
			for l := range n {
				sum += x[i*n+l] * y[j*n+l]
			}
			require.Equal(t, sum, got[i*k+j], "%d, %d", i, j)
		}
	}
}

// A weight that its own gradient and the layer below both need is overwritten in place, without a copy in each step.
func TestCompile_copiesNoWeightOfALayer(t *testing.T) {
	r := plugintest.CPU(t)
	p, err := r.Compile("layers", func(g *graph.Graph) xla.Built {
		square := shapes.Make(dtypes.Float32, 16, 16)
		h, built := graph.Parameter(g, "x", square), xla.Built{InPlace: map[int]int{}}
		var weights []*graph.Node
		for i := range 4 {
			weights = append(weights, graph.Parameter(g, fmt.Sprint("w", i), square))
			h = graph.Tanh(graph.Dot(h, weights[i]).Product())
		}
		for i, gradient := range graph.Gradient(graph.ReduceAllSum(graph.Square(h)), weights...) {
			built.InPlace[i] = i + 1
			built.Outputs = append(built.Outputs, graph.Sub(weights[i], gradient))
		}
		return built
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	text, err := p.Optimized()
	require.NoError(t, err)
	require.NotContains(t, text, " copy(")
}
