package ops_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla/ops"
)

// derived builds a graph of two parameters and returns its outputs.
func derived(t *testing.T, build func(x, y *node) []*node, x [][]float64, y [][]float64) [][]float64 {
	t.Helper()
	g := graph.NewGraph(plugintest.CPU(t), "grad")
	defer g.Finalize()
	in := func(name string, v [][]float64) *node {
		return graph.Parameter(g, name, shapes.Make(dtypes.Float64, len(v), len(v[0])))
	}
	g.Compile(build(in("x", x), in("y", y))...)
	var outputs [][]float64
	for _, o := range g.Run(x, y) {
		outputs = append(outputs, tensors.MustCopyFlatData[float64](o))
	}
	return outputs
}

var (
	x = [][]float64{{0.3, -0.7}, {1.1, 0.2}, {-0.4, 0.6}}
	y = [][]float64{{0.5, -1}, {0.25, 2}}
)

// coupled is tanh(x·y), through a loop with the same product in it.
func coupled(x, y *node) *node {
	last, _ := ops.Scan([]*node{x}, nil, func(carry, _ []*node) (next, out []*node) {
		return []*node{graph.Tanh(graph.Dot(carry[0], y).Product())}, nil
	}, ops.Length(3))
	return last[0]
}

func TestJVP(t *testing.T) {
	moved := func(h float64) [][]float64 {
		at := make([][]float64, len(y))
		for i, row := range y {
			for j, v := range row {
				at[i] = append(at[i], v+h*float64(1+i-2*j))
			}
		}
		return at
	}
	tangent := func(y *node) *node { return graph.Const(y.Graph(), [][]float64{{1, -1}, {2, 0}}) }
	got := derived(t, func(x, y *node) []*node {
		return ops.JVP([]*node{coupled(x, y)}, []*node{y}, []*node{tangent(y)})
	}, x, y)[0]
	const h = 1e-5
	value := func(y [][]float64) []float64 {
		return derived(t, func(x, y *node) []*node { return []*node{coupled(x, y)} }, x, y)[0]
	}
	more, less := value(moved(h)), value(moved(-h))
	for i := range got {
		require.InDelta(t, (more[i]-less[i])/(2*h), got[i], 1e-8)
	}
}

// The Hessian of Σ x³ is 6x on its diagonal.
func TestHessianTimesVector(t *testing.T) {
	got := derived(t, func(x, y *node) []*node {
		dx := ops.Gradient(graph.ReduceAllSum(graph.PowScalar(x, 3)), x)
		return ops.JVP(dx, []*node{x}, []*node{graph.AddScalar(graph.ZerosLike(x), 2)})
	}, x, y)[0]
	for i, v := range []float64{0.3, -0.7, 1.1, 0.2, -0.4, 0.6} {
		require.InDelta(t, 12*v, got[i], 1e-12)
	}
}

func TestVJP(t *testing.T) {
	got := derived(t, func(x, y *node) []*node {
		return ops.VJP([]*node{graph.Dot(x, y).Product(), graph.Sin(y)}, []*node{graph.Const(x.Graph(), [][]float64{{1, 0}, {0, 2}, {1, 1}}), graph.OnesLike(y)}, []*node{x, y})
	}, x, y)
	require.InDeltaSlice(t, []float64{0.5, 0.25, -2, 4, -0.5, 2.25}, got[0], 1e-12)
	require.InDeltaSlice(t, []float64{0.3 - 0.4 + math.Cos(0.5), 2.2 - 0.4 + math.Cos(1), -0.7 + 0.6 + math.Cos(0.25), 0.4 + 0.6 + math.Cos(2)}, got[1], 1e-12)
}

func TestPerExample(t *testing.T) {
	loss := func(x, y *node) *node { return graph.ReduceAllSum(graph.Square(coupled(x, y))) }
	got := derived(t, func(x, y *node) []*node {
		losses, gradients := ops.PerExample([]*node{x}, []*node{y}, func(example []*node) *node { return loss(example[0], y) })
		outputs := []*node{losses, gradients[0]}
		for i := range 3 {
			one := graph.Slice(x, graph.AxisRange(i, i+1))
			outputs = append(outputs, loss(one, y), ops.Gradient(loss(one, y), y)[0])
		}
		return outputs
	}, x, y)
	require.Len(t, got[1], 12)
	for i := range 3 {
		require.InDelta(t, got[2+2*i][0], got[0][i], 1e-12)
		require.InDeltaSlice(t, got[3+2*i], got[1][4*i:4*i+4], 1e-12)
	}
}

func TestDerivatives_wrongArguments(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "wrong")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 2))
	y := graph.Sin(x)
	for want, f := range map[string]func(){
		"ops: VJP: adjoint 0 is (Float64), expected (Float64)[2] as the output":          func() { ops.VJP([]*node{y}, []*node{graph.ReduceAllSum(y)}, []*node{x}) },
		"ops: VJP: 0 adjoints, expected one for each of the 1 outputs, and one at least": func() { ops.VJP([]*node{y}, nil, []*node{x}) },
		"ops: JVP: tangent 0 is nil, expected (Float64)[2] as the input":                 func() { ops.JVP([]*node{y}, []*node{x}, []*node{nil}) },
		"ops: JVP: output 0 is nil": func() { ops.JVP([]*node{nil}, []*node{x}, []*node{x}) },
		"ops: per example: the loss is (Float64)[1], expected a scalar of a floating-point type": func() { ops.PerExample([]*node{x}, nil, func(e []*node) *node { return e[0] }) },
		"ops: Gradient: input 0 is itself a StopGradient, expected a node that gradients reach": func() {
			z := graph.StopGradient(x)
			ops.Gradient(graph.ReduceAllSum(graph.Square(z)), z)
		},
		"ops: VJP: input 0 is itself a StopGradient":                                     func() { z := graph.StopGradient(x); ops.VJP([]*node{graph.Sin(z)}, []*node{x}, []*node{z}) },
		"ops: Gradient: the loss is (Int32), expected a scalar of a floating-point type": func() { ops.Gradient(graph.Scalar(g, dtypes.Int32, 1), x) },
		"ops: Gradient: input 0 is (Int32), expected floating-point or complex numbers":  func() { ops.Gradient(graph.ReduceAllSum(x), graph.Scalar(g, dtypes.Int32, 1)) },
		"ops: per example: field 0 is also a node to differentiate by": func() {
			ops.PerExample([]*node{x}, []*node{x}, func(e []*node) *node { return graph.ReduceAllSum(e[0]) })
		},
		"ops: per example: field 1 is (Float64)[3], and another field is (Float64)[2]: expected the same number of examples": func() {
			ops.PerExample([]*node{x, graph.Zeros(g, shapes.Make(dtypes.Float64, 3))}, nil, func(e []*node) *node { return e[0] })
		},
		"ops: per example: fields, nodes to differentiate by, and a function of the loss are needed, none of them nil": func() { ops.PerExample(nil, nil, func(e []*node) *node { return e[0] }) },
	} {
		require.ErrorContains(t, graphs.Catch(f), want)
	}
}
