//lazo:norace
package ops_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// These closures avoid MulScalar and the like: GoMLX has one node for equal scalars, in the function that asked first.

// rawIf is GoMLX's If, of closures that capture their operands.
func rawIf(condition *node, yes, no func() *node) *node {
	closure := func(f func() *node) *graph.Function {
		return graph.NewClosure(condition.Graph(), func(*graph.Graph) []*node { return []*node{f()} })
	}
	return graph.If(condition, closure(yes), closure(no))[0]
}

// rawWhile is GoMLX's While: from v it makes the given number of iterations of f, whose closures capture their other
// operands.
func rawWhile(v *node, turns int, f func(v *node) *node) *node {
	g := v.Graph()
	state := func(g *graph.Graph) (i, x *node) {
		return graph.Parameter(g, "i", shapes.Make(dtypes.Int32)), graph.Parameter(g, "v", v.Shape())
	}
	return graph.While(
		graph.NewClosure(g, func(g *graph.Graph) []*node {
			i, _ := state(g)
			return []*node{graph.LessThan(i, graph.Const(g, int32(turns)))}
		}),
		graph.NewClosure(g, func(g *graph.Graph) []*node {
			i, x := state(g)
			return []*node{graph.Add(i, graph.Const(g, int32(1))), f(x)}
		}), graph.Const(g, int32(0)), v)[1]
}

func scanned(x *node, turns int, f func(x *node) *node) *node {
	last, _ := ops.Scan([]*node{x}, nil, func(carry, _ []*node) (next, out []*node) { return []*node{f(carry[0])}, nil }, ops.Length(turns))
	return last[0]
}

// closures are programs with GoMLX's If and While, of one number, with their results. An If or While captures values of
// an iteration of the enclosing loop, in all nestings.
var closures = map[string]struct {
	build func(x *node) *node
	want  func(x float64) float64
}{
	"If in Scan": {
		func(x *node) *node {
			return scanned(x, 2, func(w *node) *node {
				return rawIf(graph.Const(w.Graph(), true), func() *node { return graph.Add(w, graph.Mul(w, w)) }, func() *node { return w })
			})
		},
		func(x float64) float64 { return turns(x, 2, func(w float64) float64 { return w + w*w }) },
	},
	"If in Scan, by a condition of the turn": {
		func(x *node) *node {
			return scanned(x, 4, func(w *node) *node {
				return rawIf(graph.LessThan(w, graph.Scalar(w.Graph(), w.DType(), 10)), func() *node { return graph.Mul(w, w) }, func() *node { return graph.Neg(w) })
			})
		},
		func(x float64) float64 {
			return turns(x, 4, func(w float64) float64 {
				if w < 10 {
					return w * w
				}
				return -w
			})
		},
	},
	"If in Scan, which takes what the body computed and what is outside of it": {
		func(x *node) *node {
			outside := graph.Sin(x)
			return scanned(x, 3, func(w *node) *node {
				inside := graph.Cos(w)
				return rawIf(graph.GreaterThan(outside, inside), func() *node { return graph.Add(outside, inside) },
					func() *node { return graph.Mul(outside, graph.Mul(w, inside)) })
			})
		},
		func(x float64) float64 {
			return turns(x, 3, func(w float64) float64 {
				if math.Sin(x) > math.Cos(w) {
					return math.Sin(x) + math.Cos(w)
				}
				return math.Sin(x) * w * math.Cos(w)
			})
		},
	},
	"If in Scan, which takes its condition": {
		func(x *node) *node {
			return scanned(x, 3, func(w *node) *node {
				big := graph.GreaterThan(w, graph.Scalar(w.Graph(), w.DType(), 1))
				return rawIf(big, func() *node { return graph.Mul(w, graph.ConvertDType(big, w.DType())) },
					func() *node { return graph.Add(graph.Add(w, w), graph.ConvertDType(big, w.DType())) })
			})
		},
		func(x float64) float64 {
			return turns(x, 3, func(w float64) float64 {
				if w > 1 {
					return w
				}
				return w + w
			})
		},
	},
	"If in If in Scan": {
		func(x *node) *node {
			return scanned(x, 3, func(w *node) *node {
				yes := graph.Const(w.Graph(), true)
				return rawIf(yes, func() *node {
					half := graph.Mul(w, graph.Const(w.Graph(), 0.5))
					return rawIf(yes, func() *node { return graph.Add(half, graph.Mul(w, w)) }, func() *node { return w })
				}, func() *node { return w })
			})
		},
		func(x float64) float64 { return turns(x, 3, func(w float64) float64 { return w/2 + w*w }) },
	},
	"If in GoMLX's While in Scan": {
		func(x *node) *node {
			return scanned(x, 2, func(w *node) *node {
				return rawWhile(graph.Sin(w), 3, func(v *node) *node {
					return rawIf(graph.GreaterThan(v, w), func() *node { return graph.Sub(v, w) }, func() *node { return graph.Add(v, graph.Mul(w, w)) })
				})
			})
		},
		func(x float64) float64 {
			return turns(x, 2, func(w float64) float64 {
				return turns(math.Sin(w), 3, func(v float64) float64 {
					if v > w {
						return v - w
					}
					return v + w*w
				})
			})
		},
	},
	"While in Scan, from a constant": {
		func(x *node) *node {
			return scanned(x, 3, func(w *node) *node {
				return rawWhile(graph.Const(w.Graph(), 0.25), 2, func(v *node) *node { return graph.Add(graph.Mul(v, graph.Const(w.Graph(), 0.5)), w) })
			})
		},
		func(x float64) float64 {
			return turns(x, 3, func(w float64) float64 { return turns(0.25, 2, func(v float64) float64 { return v/2 + w }) })
		},
	},
	"If in While": {
		func(x *node) *node {
			g := x.Graph()
			return ops.While(func(v []*node) *node {
				three := rawIf(graph.Const(g, true), func() *node { return graph.LessThan(v[1], graph.Const(g, int32(3))) }, func() *node { return graph.Const(g, true) })
				return graph.And(three, graph.LessThan(v[1], graph.Const(g, int32(9)))) // so that a mistake ends
			}, func(v []*node) []*node {
				return []*node{
					rawIf(graph.Const(g, true), func() *node { return graph.Add(v[0], graph.Mul(v[0], x)) }, func() *node { return x }),
					graph.AddScalar(v[1], 1),
				}
			}, x, graph.Const(g, int32(0)))[0]
		},
		func(x float64) float64 { return turns(x, 3, func(v float64) float64 { return v + v*x }) },
	},
	"If in Cond in Scan": {
		func(x *node) *node {
			yes := graph.Const(x.Graph(), true)
			return scanned(x, 3, func(w *node) *node {
				return ops.Cond(graph.LessThan(w, graph.Scalar(w.Graph(), w.DType(), 3)),
					func() []*node {
						double := graph.Add(w, w)
						return []*node{rawIf(yes, func() *node { return graph.Add(double, graph.Mul(x, w)) }, func() *node { return w })}
					},
					func() []*node {
						return []*node{rawIf(yes, func() *node { return graph.Neg(w) }, func() *node { return x })}
					})[0]
			})
		},
		func(x float64) float64 {
			return turns(x, 3, func(w float64) float64 {
				if w < 3 {
					return 2*w + x*w
				}
				return -w
			})
		},
	},
	"Scan in Cond, with an If": {
		func(x *node) *node {
			yes := graph.Const(x.Graph(), true)
			return ops.Cond(graph.LessThan(x, graph.Scalar(x.Graph(), x.DType(), 3)),
				func() []*node {
					five := graph.Add(x, graph.Scalar(x.Graph(), x.DType(), 5))
					return []*node{scanned(five, 2, func(w *node) *node {
						return rawIf(yes, func() *node { return graph.Add(five, graph.Mul(w, w)) }, func() *node { return w })
					})}
				},
				func() []*node { return []*node{x} })[0]
		},
		func(x float64) float64 { return turns(x+5, 2, func(w float64) float64 { return x + 5 + w*w }) },
	},
	"Scan in Scan, with an If of both": {
		func(x *node) *node {
			return scanned(x, 2, func(w *node) *node {
				return scanned(graph.Sin(w), 2, func(v *node) *node {
					return rawIf(graph.Const(x.Graph(), true), func() *node { return graph.Add(graph.Mul(v, w), x) }, func() *node { return v })
				})
			})
		},
		func(x float64) float64 {
			return turns(x, 2, func(w float64) float64 {
				return turns(math.Sin(w), 2, func(v float64) float64 { return v*w + x })
			})
		},
	},
	"If of an array of constants in Cond": {
		func(x *node) *node {
			g := x.Graph()
			list := graph.Const(g, []float64{1, 2, 3})
			return ops.Cond(graph.Const(g, true), func() []*node {
				inside := graph.Const(g, []float64{5, 6, 7})
				return []*node{rawIf(graph.Const(g, true), func() *node {
					return graph.ReduceAllSum(graph.Mul(graph.Add(list, graph.Const(g, []float64{0, 0, 0})), graph.Add(inside, graph.Const(g, []float64{1, 1, 1}))))
				}, func() *node { return x })}
			}, func() []*node { return []*node{x} })[0]
		},
		func(float64) float64 { return 6 + 2*7 + 3*8 },
	},
}

func turns(v float64, n int, f func(v float64) float64) float64 {
	for range n {
		v = f(v)
	}
	return v
}

// A closure of GoMLX's If or While in the body of a loop or a branch gets the values of each iteration, and not those
// of tracing, 0.
func TestClosures_inBodies(t *testing.T) {
	for name, p := range closures {
		t.Run(name, func(t *testing.T) {
			for _, x := range []float64{2, 0.75} {
				got := compiled(t, x, func(x *node) []*node { return []*node{p.build(x)} })
				require.InEpsilon(t, p.want(x), got[0].Value(), 1e-12)
			}
		})
	}
}

// The same programs in a step of each strategy.
func TestClosures_inSteps(t *testing.T) {
	for name, open := range map[string]func() strategies.Strategy{
		"jit":   func() strategies.Strategy { return strategies.Jit(plugintest.CPU(t)) },
		"eager": func() strategies.Strategy { return strategies.Eager(plugintest.Devices(t, 1)) },
		"data parallel": func() strategies.Strategy {
			s, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
			require.NoError(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := managed.New(open(), managed.WithOptimizer(optim.New(0.5)))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			step := managed.TrainStep(func(b *managed.Builder) {
				x := b.Field("x")
				w := b.Scope().VariableWithValue("w", 2.0).NodeValue(b.Graph())
				b.Loss("loss", graph.Mul(w, graph.ReduceAllMean(x)))
				for _, name := range slices.Sorted(maps.Keys(closures)) { // an eager step builds each time
					p := closures[name]
					b.Metric(name, graph.StopGradient(p.build(graph.ReduceAllMean(x))))
					b.Metric(name+", of w", graph.StopGradient(p.build(w)))
				}
			})
			defer func() { require.NoError(t, step.Close()) }()
			_, logs, err := step.Step(t.Context(), state, data.Batch{Fields: []data.Field{data.X([]float64{0.5, 1, 0.5, 1}, 4, 1)}})
			require.NoError(t, err)
			for name, p := range closures {
				for of, x := range map[string]float64{name: 0.75, name + ", of w": 2} {
					got, err := logs.Float(of)
					require.NoError(t, err)
					require.InEpsilon(t, p.want(x), got, 1e-6, of)
				}
			}
		})
	}
}

// Gradients through GoMLX's If and While are refused in bodies too, also for captures from outside the loop. After a
// StopGradient they are right.
func TestClosures_gradients(t *testing.T) {
	yes := func(x *node) *node { return graph.Const(x.Graph(), true) }
	square := func(condition, x *node) *node {
		return rawIf(condition, func() *node { return graph.Mul(x, x) }, func() *node { return x })
	}
	for name, f := range map[string]func(x *node) *node{
		"of the carried value": func(x *node) *node {
			return scanned(x, 2, func(w *node) *node { return graph.Add(w, square(yes(w), w)) })
		},
		"of a value from outside": func(x *node) *node {
			return scanned(x, 2, func(w *node) *node { return graph.Add(w, square(yes(w), x)) })
		},
		"of a value from outside, by a condition of the turn": func(x *node) *node {
			return scanned(x, 2, func(w *node) *node { return graph.Add(w, square(graph.GreaterThan(w, x), x)) })
		},
		"in a branch": func(x *node) *node {
			return ops.Cond(yes(x), func() []*node { return []*node{graph.Add(x, square(yes(x), x))} }, func() []*node { return []*node{x} })[0]
		},
		"a While": func(x *node) *node {
			return scanned(x, 2, func(w *node) *node {
				return graph.Add(w, rawWhile(graph.Const(x.Graph(), 0.5), 2, func(v *node) *node { return graph.Add(v, w) }))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "refused")
			defer g.Finalize()
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64))
			const refused = "the loss depends on an If or a While, expected operations that have a gradient"
			require.ErrorContains(t, graphs.Catch(func() { ops.Gradient(f(x), x) }), refused)
			if name != "of a value from outside" { // that If is outside of the loop, where graph.Gradient does not reach it
				require.ErrorContains(t, graphs.Catch(func() { graph.Gradient(f(x), x) }), refused)
			}
		})
	}
	got := compiled(t, 2.0, func(x *node) []*node {
		y := scanned(x, 2, func(w *node) *node { return graph.Mul(w, graph.StopGradient(square(yes(w), w))) })
		return append(ops.Gradient(y, x), y)
	})
	require.Equal(t, 4.0*64, got[0].Value()) // (w·w²)·(w·w²)², by the w that are not in squares
	require.Equal(t, 512.0, got[1].Value())
}

// GoMLX's backend in Go does not report what closures capture.
func TestClosures_goPlugin(t *testing.T) {
	g := graph.NewGraph(plugintest.Go(t), "refused")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64))
	require.ErrorContains(t, graphs.Catch(func() {
		ops.While(func(v []*node) *node { return graph.LessThan(v[0], graph.Const(g, 9.0)) }, func(v []*node) []*node {
			return []*node{rawIf(graph.Const(g, true), func() *node { return graph.Add(v[0], v[0]) }, func() *node { return x })}
		}, x)
	}), "use ops.Cond, ops.Switch, ops.Scan or ops.While")
}
