package hlo_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// GoMLX's own graphs, with a gradient, run on the builder.
func TestGoMLXGraph(t *testing.T) {
	d := open(t)
	x := tensors.FromValue([][]float32{{1, 2}, {3, 4}, {5, -6}})
	w := tensors.FromValue([][]float32{{0.5, -0.25}, {0.125, 1}})
	outputs := graph.MustExecOnceN(d, func(x, w *graph.Node) []*graph.Node {
		loss := graph.ReduceAllSum(graph.Tanh(graph.Dot(x, w).Product()))
		return append([]*graph.Node{loss}, graph.Gradient(loss, w)...)
	}, x, w)
	loss, gradient := outputs[0].Value().(float32), outputs[1].Value().([][]float32)
	var want float64
	wantGradient := [2][2]float64{}
	for _, row := range x.Value().([][]float32) {
		for j := range 2 {
			var sum float64
			for i := range 2 {
				sum += float64(row[i]) * float64(w.Value().([][]float32)[i][j])
			}
			want += math.Tanh(sum)
			for i := range 2 {
				wantGradient[i][j] += float64(row[i]) * (1 - math.Tanh(sum)*math.Tanh(sum))
			}
		}
	}
	require.InDelta(t, want, loss, 1e-5)
	for i := range 2 {
		for j := range 2 {
			require.InDelta(t, wantGradient[i][j], gradient[i][j], 1e-5)
		}
	}
}

// A convolution, pooling, gather and random numbers from GoMLX's graph functions. The gradient matches differences of
// the loss.
func TestGoMLXModel(t *testing.T) {
	d := open(t)
	loss := func(kernel *graph.Node) *graph.Node {
		g := kernel.Graph()
		x := graph.Sin(graph.IotaFull(g, shapes.Make(dtypes.Float64, 2, 6, 6, 1)))
		y := graph.Convolve(x, kernel).Done()
		y = graph.MaxPool(y).Window(2).Done()
		y = graph.Gather(graph.Reshape(y, -1, 2), graph.Const(g, [][]int32{{0}, {3}, {1}, {3}}))
		_, noise := graph.RandomUniform(graph.RNGStateFromSeedForGraph(g, 7), y.Shape())
		return graph.ReduceAllSum(graph.Mul(graph.Square(y), noise))
	}
	at := make([]float64, 2*2*1*2)
	for i := range at {
		at[i] = math.Cos(float64(3 * i))
	}
	run := func(f func(kernel *graph.Node) *graph.Node) []float64 {
		out, err := graph.CallOnce(d, f, tensors.FromFlatDataAndDimensions(at, 2, 2, 1, 2))
		require.NoError(t, err)
		return tensors.MustCopyFlatData[float64](out)
	}
	gradient := run(func(kernel *graph.Node) *graph.Node { return graph.Gradient(loss(kernel), kernel)[0] })
	require.Positive(t, d.last.Ops[compute.OpTypeConvGeneral])
	require.Positive(t, d.last.Ops[compute.OpTypeRNGBitGenerator])
	const step = 1e-6
	for i := range at {
		keep := at[i]
		at[i] = keep + step
		up := run(loss)[0]
		at[i] = keep - step
		down := run(loss)[0]
		at[i] = keep
		require.InDelta(t, (up-down)/(2*step), gradient[i], 1e-5, "gradient of kernel element %d", i)
	}
}

// Nested loops, branches and sorts of GoMLX's graph functions, with captured values of all levels.
func TestGoMLXFlow(t *testing.T) {
	d := open(t)
	scalar := shapes.Make(dtypes.Int32)
	outputs := graph.MustExecOnceN(d, func(x *graph.Node) []*graph.Node {
		g := x.Graph()
		limit := graph.ReduceAllSum(x) // 15
		double := graph.NewFunction(g, "double", func(g *graph.Graph) []*graph.Node {
			v := graph.Parameter(g, "v", scalar)
			return []*graph.Node{graph.Add(v, v)}
		})
		// For each i below the limit: adds odd ones, and half of even ones, counted by an inner loop, twice.
		below := func(bound func(state []*graph.Node) *graph.Node, parameters ...string) func(g *graph.Graph) []*graph.Node {
			return func(g *graph.Graph) []*graph.Node {
				var state []*graph.Node
				for _, name := range parameters {
					state = append(state, graph.Parameter(g, name, scalar))
				}
				return []*graph.Node{graph.LessThan(state[0], bound(state))}
			}
		}
		outer := graph.While(
			graph.NewClosure(g, below(func([]*graph.Node) *graph.Node { return limit }, "i", "sum")),
			graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
				i, sum := graph.Parameter(g, "i", scalar), graph.Parameter(g, "sum", scalar)
				more := graph.If(graph.Equal(graph.Mod(i, graph.Const(g, int32(2))), graph.Const(g, int32(1))),
					graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{i} }),
					graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
						halves := graph.While(
							graph.NewClosure(g, below(func(state []*graph.Node) *graph.Node { return graph.Sub(i, state[0]) }, "j")),
							graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
								return []*graph.Node{graph.Add(graph.Parameter(g, "j", scalar), graph.Const(g, int32(1)))}
							}),
							graph.Const(g, int32(0)))
						return double.Call(halves[0])
					}))
				return []*graph.Node{graph.Add(i, graph.Const(g, int32(1))), graph.Add(sum, more[0])}
			}),
			graph.Const(g, int32(0)), graph.Const(g, int32(0)))
		values, places := graph.TopK(x, 2, 0)
		least, leastPlaces := graph.BottomK(x, 2, -1)
		return []*graph.Node{outer[0], outer[1], values, places, least, leastPlaces, graph.Sort(x, 0, true), graph.TopKMask(x, 2, 0)}
	}, tensors.FromValue([]int32{3, 1, 4, 1, 6}))
	for i, want := range []any{
		int32(15), int32(105), []int32{6, 4}, []int32{4, 2}, []int32{1, 1}, []int32{1, 3}, []int32{1, 1, 3, 4, 6}, []bool{false, false, true, false, true},
	} {
		require.Equal(t, want, outputs[i].Value(), "output %d", i)
	}
	require.Equal(t, 2, d.last.Ops[compute.OpTypeWhile])
	require.Equal(t, 1, d.last.Ops[compute.OpTypeCall])
}

// GoMLX makes a constant scalar once per graph, in main, and passes it to closures. XLA's sort cannot see main's
// values.
func TestGoMLXScalars(t *testing.T) {
	outputs := graph.MustExecOnceN(open(t), func(x *graph.Node) []*graph.Node {
		g := x.Graph()
		scalar := shapes.Make(dtypes.Float32)
		sevenfold := graph.MulScalar(x, 7)
		branch := func() *graph.Function {
			return graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{graph.MulScalar(x, 7)} })
		}
		chosen := graph.If(graph.Const(g, true), branch(), branch())
		sorted := graph.SortFunc(graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
			a, b := graph.Parameter(g, "a", scalar), graph.Parameter(g, "b", scalar)
			return []*graph.Node{graph.GreaterThan(graph.MulScalar(a, 7), graph.MulScalar(b, 7))}
		}), 0, true, graph.IotaFull(g, shapes.Make(dtypes.Float32, 3)))
		return []*graph.Node{sevenfold, chosen[0], sorted[0]}
	}, tensors.FromValue(float32(3)))
	require.Equal(t, float32(21), outputs[0].Value())
	require.Equal(t, float32(21), outputs[1].Value())
	require.Equal(t, []float32{2, 1, 0}, outputs[2].Value())
}

// An operation that GoMLX composes from others leaves no statements of the refused call.
func TestGoMLXFallback(t *testing.T) {
	d := open(t)
	outputs := graph.MustExecOnceN(d, func(x *graph.Node) []*graph.Node {
		return []*graph.Node{graph.Softmax(x), graph.CumSum(x, 0)}
	}, tensors.FromValue([]float32{1, 2, 3}))
	require.Equal(t, []float32{1, 3, 6}, outputs[1].Value())
	require.InDeltaSlice(t, []float32{0.0900306, 0.2447285, 0.6652409}, outputs[0].Value(), 1e-6)
	text := d.last.Text()
	for _, made := range regexp.MustCompile(`(?m)^ *(%\w+) = `).FindAllStringSubmatch(text, -1) {
		require.Greater(t, len(regexp.MustCompile(made[1]+`\b`).FindAllString(text, -1)), 1, "nothing takes %s:\n%s", made[1], text)
	}
	require.False(t, strings.Contains(text, "custom_call"))
	_, err := graph.CallOnce(d, func(x *graph.Node) *graph.Node {
		return graph.DynamicReshape(x, graph.NamedDynamicDim("rows", graph.ReduceAllSum(graph.ConvertDType(x, dtypes.Int32))))
	}, tensors.FromValue([]float32{1, 2}))
	require.True(t, compute.IsNotImplemented(err), err)
	require.ErrorContains(t, err, "expected fixed shapes")
}
