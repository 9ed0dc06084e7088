package xla_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// product multiplies two n by n matrices; the exponential of the result replaces the second.
func product(n int) func(g *graph.Graph) xla.Built {
	return func(g *graph.Graph) xla.Built {
		s := shapes.Make(dtypes.Float32, n, n)
		a, b := graph.Parameter(g, "a", s), graph.Parameter(g, "b", s)
		return xla.Built{Outputs: []*graph.Node{graph.Exp(graph.Dot(a, b).Product())}, InPlace: map[int]int{0: 1}}
	}
}

func TestCostAndMemory(t *testing.T) {
	r := plugintest.Uncached(t)
	const n = 128
	p, err := r.Compile("product", product(n))
	require.NoError(t, err)
	cost, err := p.Cost()
	require.NoError(t, err)
	memory, err := p.Memory()
	require.NoError(t, err)
	t.Logf("%+v, %+v", cost, memory)
	require.InEpsilon(t, 2*math.Pow(n, 3), cost.FLOPs, 0.05, "a product and an addition for each term")
	require.EqualValues(t, n*n, cost.Transcendentals)
	require.GreaterOrEqual(t, cost.BytesAccessed, 3.0*4*n*n)
	require.EqualValues(t, 2*4*n*n, memory.Arguments)
	require.EqualValues(t, 4*n*n, memory.Outputs)
	require.EqualValues(t, 4*n*n, memory.Aliased)
	inputs, outputs, err := p.Signature()
	require.NoError(t, err)
	require.Len(t, inputs, 2)
	require.Equal(t, []int{n, n}, outputs[0].Dimensions)
	require.NoError(t, p.Close())
	_, err = p.Cost()
	require.EqualError(t, err, "xla: cost of product: the program is closed")
	_, err = p.Memory()
	require.EqualError(t, err, "xla: memory of product: the program is closed")

	plain := plugintest.Go(t)
	p, err = plain.Compile("product", product(2))
	require.NoError(t, err)
	_, err = p.Cost()
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	_, err = p.Memory()
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	_, _, err = p.Signature()
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.NoError(t, p.Close())
}

func TestOptimized(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r := plugintest.Uncached(t)
	m, err := r.Lower("product", product(4))
	require.NoError(t, err)
	text, err := r.Optimized("product", m.Text())
	require.NoError(t, err)
	require.Contains(t, text, "HloModule product, is_scheduled=true, input_output_alias={ {}: (1, {}, may-alias) }")
	require.Contains(t, text, "ROOT")
	_, err = r.Optimized("broken", m.Text()[:100])
	require.ErrorContains(t, err, "xla: optimize broken: ")
	plain := plugintest.Go(t)
	_, err = plain.Optimized("product", m.Text())
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	left, err := filepath.Glob(filepath.Join(temp, "lazo-hlo-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
