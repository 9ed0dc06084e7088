package ops_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla/ops"
)

type array = [][][]float64

func functionOf(name string) func(in []*graph.Node) *graph.Node {
	return map[string]func(in []*graph.Node) *graph.Node{
		"cholesky": func(in []*graph.Node) *graph.Node { return ops.Cholesky(in[0]) },
		"lower":    func(in []*graph.Node) *graph.Node { return ops.SolveLower(in[0], in[1]) },
		"upper":    func(in []*graph.Node) *graph.Node { return ops.SolveUpper(in[0], in[1]) },
	}[name]
}

// Values, gradients and second gradients are JAX's.
func TestAsJAX(t *testing.T) {
	var cases map[string]struct {
		Inputs, Tangents, First, Second []array
		Weights, Value                  array
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/linalg.json")), &cases))
	require.Len(t, cases, 3)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), name)
			defer g.Finalize()
			var in []*graph.Node
			var given []any
			for i, x := range c.Inputs {
				in = append(in, graph.Parameter(g, fmt.Sprint(i), shapes.Make(dtypes.Float64, len(x), len(x[0]), len(x[0][0]))))
				given = append(given, x)
			}
			value := functionOf(name)(in)
			first := ops.VJP([]*graph.Node{value}, []*graph.Node{graph.Const(g, c.Weights)}, in)
			var tangents []*graph.Node
			for _, x := range c.Tangents {
				tangents = append(tangents, graph.Const(g, x))
			}
			second := ops.VJP(first, tangents, in)
			g.Compile(append(append([]*graph.Node{value}, first...), second...)...)
			want := append(append([]array{c.Value}, c.First...), c.Second...)
			for i, got := range g.Run(given...) {
				flat, k := tensors.MustCopyFlatData[float64](got), 0
				for _, matrix := range want[i] {
					for _, row := range matrix {
						for _, w := range row {
							require.InDelta(t, w, flat[k], 1e-9*max(1, math.Abs(w)), "output %d, number %d", i, k)
							k++
						}
					}
				}
				require.Len(t, flat, k)
			}
		})
	}
}

// As in JAX, the factor of a matrix that is not positive definite is NaN; the other matrices of the batch are right.
func TestCholesky_notPositiveDefinite(t *testing.T) {
	exec := graph.MustNewExec(plugintest.CPU(t), ops.Cholesky)
	defer exec.Finalize()
	got := exec.MustCall([][][]float32{{{1, 2}, {2, 1}}, {{0, 0}, {0, 0}}, {{4, 2}, {2, 10}}})[0].Value().([][][]float32)
	for _, l := range got[:2] {
		require.True(t, math.IsNaN(float64(l[0][0])) && math.IsNaN(float64(l[1][0])) && math.IsNaN(float64(l[1][1])), "%v", l)
		require.Zero(t, l[0][1])
	}
	require.Equal(t, [][]float32{{2, 0}, {1, 3}}, got[2])
}

// A 0 on the diagonal makes its own row infinite, and not those before it.
func TestSolve_singular(t *testing.T) {
	exec := graph.MustNewExec(plugintest.CPU(t), ops.SolveLower)
	defer exec.Finalize()
	l := [][]float32{{2, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 1}}
	got := exec.MustCall(l, [][]float32{{1}, {2}, {3}, {4}})[0].Value().([][]float32)
	infinite := float32(math.Inf(1))
	require.Equal(t, [][]float32{{0.5}, {1.5}, {infinite}, {-infinite}}, got, "JAX's solve_triangular")
}

func TestLinalg_wrongArguments(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "wrong")
	defer g.Finalize()
	of := func(dims ...int) *graph.Node { return graph.Zeros(g, shapes.Make(dtypes.Float32, dims...)) }
	for want, f := range map[string]func(){
		"ops: Cholesky: the matrices are (Float32)[2, 3], expected floating-point numbers [batch…, n, n]": func() { ops.Cholesky(of(2, 3)) },
		"ops: SolveLower: the matrices are nil, expected":                                                 func() { ops.SolveLower(nil, of(2)) },
		"ops: SolveUpper: the right side is (Float32)[2], expected [batch…, 2, k] for matrices":           func() { ops.SolveUpper(of(2, 2), of(2)) },
	} {
		require.ErrorContains(t, graphs.Catch(f), want)
	}
}
