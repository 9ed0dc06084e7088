package xla_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestCheckFinite(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t))
	e.CheckFinite = true
	inf := math.Inf(-1)
	of := func(g *graph.Graph, t dtypes.DType, x ...float64) *graph.Node {
		return graph.ConvertDType(graph.Const(g, x), t)
	}
	for _, row := range []struct {
		name  string
		build func(g *graph.Graph)
		op    string // "": nothing is found
		nan   bool
	}{
		{"numbers", func(g *graph.Graph) { graph.Exp(of(g, dtypes.Float32, 1, 2)) }, "", false},
		{"integers", func(g *graph.Graph) { graph.Neg(of(g, dtypes.Int32, 1, 2)) }, "", false},
		{"an infinite constant", func(g *graph.Graph) { graph.Const(g, []float64{inf}) }, "", false},
		{"a mask", func(g *graph.Graph) {
			x := graph.Where(graph.Const(g, []bool{true, false}), of(g, dtypes.Float32, 1, 2), of(g, dtypes.Float32, inf, inf))
			require.Equal(t, []float32{float32(math.E), 0}, value(t, graph.Exp(x)))
		}, "", false},
		{"NaN of infinities", func(g *graph.Graph) {
			x := of(g, dtypes.Float32, inf)
			graph.Sub(x, x)
		}, "Sub", true},
		{"NaN that is handed on", func(g *graph.Graph) { graph.Neg(graph.Sqrt(of(g, dtypes.Float32, -1))) }, "Sqrt", true},
		{"float16 too large", func(g *graph.Graph) { graph.Mul(of(g, dtypes.Float16, 6e4), of(g, dtypes.Float16, 2)) }, "Mul", false},
		{"bfloat16", func(g *graph.Graph) { graph.Log(of(g, dtypes.BFloat16, 1, 0)) }, "Log", false},
		{"float64", func(g *graph.Graph) { graph.Log(of(g, dtypes.Float64, 1, -1)) }, "Log", true},
		{"complex", func(g *graph.Graph) {
			graph.Complex(of(g, dtypes.Float32, 1), graph.Div(of(g, dtypes.Float32, 1), of(g, dtypes.Float32, 0)))
		}, "Div", false},
		{"the imaginary part", func(g *graph.Graph) {
			graph.Mul(graph.Complex(of(g, dtypes.Float32, 0), of(g, dtypes.Float32, 3e38)), graph.Const(g, []complex64{2}))
		}, "Mul", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := look(e, row.build)
			if row.op == "" {
				require.NoError(t, err)
				return
			}
			var first *xla.NotFiniteError
			require.ErrorAs(t, err, &first)
			require.Equal(t, row.op, first.Op)
			require.Equal(t, row.nan, first.NaN)
			require.Contains(t, first.Where, "xla/eager_finite_test.go:")
			require.NotErrorIs(t, err, xla.ErrInvalidArgument)
		})
	}
}
