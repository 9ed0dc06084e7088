package autodiff_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// unrolled computes autodiff.Loop.Run iteration by iteration.
func unrolled(l autodiff.Loop, carry, places []node, body autodiff.Body) (last, outs []node) {
	last = carry
	var made [][]node // by place
	for i := range l.Length {
		place := i
		if l.Reverse {
			place = l.Length - 1 - i
		}
		var at []node
		for _, p := range places {
			at = append(at, graph.Reshape(graph.Slice(p, graph.AxisElem(place)), p.Shape().Dimensions[1:]...))
		}
		var out []node
		last, out = body(last, at, nil)
		if made == nil {
			made = make([][]node, len(out))
		}
		for k := range out {
			if made[k] == nil {
				made[k] = make([]node, l.Length)
			}
			made[k][place] = out[k]
		}
	}
	for _, list := range made {
		outs = append(outs, graph.Stack(list, 0))
	}
	return last, outs
}

// scalar64 is a scalar of the type of the tests.
func scalar64(x node, v float64) node { return graph.Scalar(x.Graph(), dtypes.Float64, v) }

// TestLoop compares a loop, and its first and second derivatives, with the unrolled iterations.
func TestLoop(t *testing.T) {
	type program struct {
		loop autodiff.Loop
		run  func(g *graph.Graph, run runner, x, h, w, u node) (last, outs []node)
	}
	cell := func(w, u node) autodiff.Body {
		return func(carry, at, _ []node) (next, out []node) {
			n := graph.Tanh(graph.Add(graph.Dot(at[0], w).Product(), graph.Dot(carry[0], u).Product()))
			return []node{n}, []node{graph.Mul(n, graph.Square(n))}
		}
	}
	simple := func(_ *graph.Graph, run runner, x, h, w, u node) (last, outs []node) {
		return run([]node{h}, []node{x}, nil, cell(w, u))
	}
	programs := map[string]program{
		"forwards":  {loop: autodiff.Loop{Length: 5}, run: simple},
		"backwards": {loop: autodiff.Loop{Length: 5, Reverse: true}, run: simple},
		"a counter and what hangs on nothing": {loop: autodiff.Loop{Length: 5}, run: func(g *graph.Graph, run runner, x, h, w, u node) (last, outs []node) {
			return run([]node{graph.Const(g, int32(1)), h}, []node{x}, nil, func(carry, at, _ []node) (next, out []node) {
				k := graph.ConvertDType(carry[0], dtypes.Float64)
				y := graph.Mul(graph.Mul(carry[1], k), graph.Sin(graph.Dot(at[0], graph.Mul(w, w)).Product()))
				return []node{graph.AddScalar(carry[0], 1), y}, []node{graph.Sin(graph.ReduceSum(graph.Exp(w), 0)), at[0], graph.Dot(y, u).Product()}
			})
		}},
		"in a loop": {loop: autodiff.Loop{Length: 3}, run: func(g *graph.Graph, run runner, x, h, w, u node) (last, outs []node) {
			return run([]node{h}, []node{graph.Slice(x, graph.AxisRange(0, 3))}, nil, func(carry, at, _ []node) (next, out []node) {
				k := graph.Sin(carry[0])
				inner, each := run([]node{carry[0]}, []node{graph.Stack([]node{at[0], graph.Mul(at[0], at[0]), graph.Exp(at[0])}, 0)}, nil,
					func(carry, at, _ []node) (next, out []node) {
						y := graph.Tanh(graph.Add(graph.Mul(k, graph.Dot(at[0], w).Product()), graph.Dot(carry[0], u).Product()))
						return []node{y}, []node{graph.Mul(y, k)}
					})
				return inner, []node{graph.ReduceSum(graph.Square(each[0]), 0)}
			})
		}},
	}
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "loop")
			defer g.Finalize()
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 5, 2, 3))
			h := graph.Parameter(g, "h", shapes.Make(dtypes.Float64, 2, 4))
			w := graph.Parameter(g, "w", shapes.Make(dtypes.Float64, 3, 4))
			u := graph.Parameter(g, "u", shapes.Make(dtypes.Float64, 4, 4))
			var outputs []node
			for _, run := range []runner{
				func(carry, places, fixed []node, body autodiff.Body) (last, outs []node) {
					return p.loop.Run(g, carry, places, fixed, body, nil)
				},
				func(carry, places, _ []node, body autodiff.Body) (last, outs []node) {
					return unrolled(p.loop, carry, places, body)
				},
			} {
				last, outs := p.run(g, run, x, h, w, u)
				loss := scalar64(x, 0)
				for _, o := range slices.Concat(last, outs) {
					o = graph.ConvertDType(o, dtypes.Float64)
					loss = graph.Add(loss, graph.ReduceAllSum(graph.Mul(o, graph.Exp(o))))
				}
				first := autodiff.Gradient(loss, x, h, w, u)
				penalty := scalar64(x, 0)
				for _, d := range first {
					penalty = graph.Add(penalty, graph.ReduceAllSum(graph.Square(d)))
				}
				outputs = append(outputs, slices.Concat(last, outs, first, autodiff.Gradient(penalty, x, h, w, u))...)
			}
			g.Compile(outputs...)
			var inputs []any
			for _, p := range []node{x, h, w, u} {
				values := tensors.FromShape(p.Shape())
				tensors.MustMutableFlatData(values, func(flat []float64) {
					for i := range flat {
						flat[i] = math.Mod(0.37*float64(i+1+int(p.Id())), 1) - 0.5
					}
				})
				inputs = append(inputs, values)
			}
			results := g.Run(inputs...)
			n := len(results) / 2
			require.GreaterOrEqual(t, n, 10)
			for i := range n {
				if results[i].DType() == dtypes.Float64 {
					a, b := tensors.MustCopyFlatData[float64](results[i]), tensors.MustCopyFlatData[float64](results[n+i])
					require.InDeltaSlice(t, b, a, 1e-10, "output %d", i)
				} else {
					require.Equal(t, results[n+i].Value(), results[i].Value())
				}
			}
		})
	}
}

type runner func(carry, places, fixed []node, body autodiff.Body) (last, outs []node)
