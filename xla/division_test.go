package xla_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// Integer division by a constant that contains 0 is refused at its line, since XLA's constant folding would end the
// process. A divisor that only evaluates to 0 is hidden from the folding, and yields the result of run time.
func TestR20_integersDividedByConstantZero(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name, want string
		build      func(g *graph.Graph) *graph.Node
	}{
		{"scalar", "the divisor is the constant 0", func(g *graph.Graph) *graph.Node {
			return graph.Div(graph.Const(g, int32(7)), graph.Const(g, int32(0)))
		}},
		{"of a variable", "the divisor is the constant 0", func(g *graph.Graph) *graph.Node {
			return graph.Div(graph.Iota(g, shapes.Make(dtypes.Uint8, 3), 0), graph.Const(g, uint8(0)))
		}},
		{"remainder", "the divisor is the constant 0", func(g *graph.Graph) *graph.Node {
			return graph.Rem(graph.Const(g, []int64{7, 8}), graph.Const(g, int64(0)))
		}},
		{"one element", "element 1 of the constant divisor is 0", func(g *graph.Graph) *graph.Node {
			return graph.Div(graph.Const(g, []int16{7, 7, 7}), graph.Const(g, []int16{1, 0, 2}))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, compiled := r.Compile("quotient", func(g *graph.Graph) xla.Built { return xla.Built{Outputs: []*graph.Node{row.build(g)}} })
			stepped := look(newEager(t, r), func(g *graph.Graph) { row.build(g) })
			for _, err := range []error{compiled, stepped} {
				require.ErrorIs(t, err, xla.ErrInvalidArgument)
				require.ErrorContains(t, err, row.want)
				require.ErrorContains(t, err, "xla/division_test.go:")
			}
		})
	}

	type ints = []int32
	exec, err := graph.NewExec(r, func(x *graph.Node) []*graph.Node {
		g := x.Graph()
		c := func(v int32) *graph.Node { return graph.Const(g, ints{v, v}) }
		sorted := graph.SortFunc(graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
			one, two := graph.Parameter(g, "one", shapes.Make(dtypes.Int32)), graph.Parameter(g, "two", shapes.Make(dtypes.Int32))
			return []*graph.Node{graph.LessThan(graph.Rem(one, graph.Sub(two, two)), graph.Div(two, graph.OnesLike(two)))}
		}), 0, true, x)
		quotients := []*graph.Node{
			graph.Div(c(7), graph.Sub(c(1), c(1))), graph.Div(c(7), graph.Sub(x, x)), graph.Div(c(7), graph.Mul(x, c(0))),
			graph.Div(c(7), graph.ConvertDType(graph.Const(g, []float32{0, 0}), dtypes.Int32)),
			graph.Div(c(7), graph.Slice(graph.Const(g, ints{1, 1, 0, 0}), graph.AxisRange(2, 4))),
			graph.Div(c(7), graph.Where(graph.Const(g, []bool{true, true}), c(0), x)),
			graph.Div(x, graph.Sub(c(1), c(1))),
			graph.Rem(c(7), graph.Sub(x, x)),
			graph.Div(c(math.MinInt32), graph.Sub(c(0), c(1))),
		}
		return append(quotients, graph.Div(graph.Const(g, []uint8{7, 7}), graph.Const(g, []uint8{2, 3})), sorted[0])
	})
	require.NoError(t, err)
	defer exec.Finalize()
	got, err := exec.Call(ints{5, 3})
	require.NoError(t, err)
	for i := range 7 {
		require.Equal(t, ints{-1, -1}, got[i].Value(), "quotient %d by 0", i)
	}
	require.Equal(t, ints{7, 7}, got[7].Value(), "remainder by 0")
	require.Equal(t, ints{math.MinInt32, math.MinInt32}, got[8].Value())
	require.Equal(t, []uint8{3, 2}, got[9].Value())
	require.Equal(t, ints{3, 5}, got[10].Value())
}
