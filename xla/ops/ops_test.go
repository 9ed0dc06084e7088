package ops_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

type node = graph.Node

// recurrent is a step with all features: a scan over ragged sequences with a nested scan, a condition and random
// numbers, variables set in bodies, a switch, a while.
func recurrent(b *managed.Builder) {
	x, y, n := b.Field("x"), b.Field("y"), b.Field("n")
	g, s := x.Graph(), b.Scope()
	batch, places, features := x.Shape().Dimensions[0], x.Shape().Dimensions[1], x.Shape().Dimensions[2]
	const hidden = 5
	weights := func(name string, dims ...int) *node {
		return s.VariableWithShape(name, shapes.Make(dtypes.Float32, dims...)).NodeValue(g)
	}
	seen := s.At("count").VariableWithValue("seen", float32(0)).SetTrainable(false)
	rare := s.At("count").VariableWithValue("rare", float32(0)).SetTrainable(false)
	u := weights("u", hidden, hidden)
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, batch, hidden))
	_, hs := ops.Scan([]*node{zero}, []*node{x}, func(carry, at []*node) (next, out []*node) {
		w := weights("w", features, hidden) // made in the body
		noise := s.RandomUniform(g, shapes.Make(dtypes.Float32, batch, hidden))
		h := graph.Tanh(graph.Add(graph.Dot(at[0], w).Product(), graph.Dot(carry[0], u).Product()))
		h = graph.Where(graph.LessThan(noise, graph.Scalar(g, dtypes.Float32, 0.9)), h, graph.MulScalar(h, 0.5))
		inner, _ := ops.Scan([]*node{h}, nil, func(carry, _ []*node) (next, out []*node) {
			seen.SetNodeValue(graph.AddScalar(seen.NodeValue(g), 1))
			return []*node{graph.Sin(graph.Add(carry[0], graph.Dot(h, u).Product()))}, nil
		}, ops.Length(3))
		big := graph.LessThan(graph.ReduceAllMean(noise), graph.Scalar(g, dtypes.Float32, 0.5))
		h = ops.Cond(big,
			func() []*node {
				rare.SetNodeValue(graph.AddScalar(rare.NodeValue(g), 1))
				return []*node{graph.MulScalar(graph.Dot(inner[0], u).Product(), 0.5)}
			},
			func() []*node { return []*node{graph.Square(h)} })[0]
		return []*node{h}, []*node{h}
	}, ops.Axis(1), ops.Lengths(n), ops.Reverse())
	h := graph.ReduceSum(hs[0], 1)
	h = ops.Switch(graph.ReduceAllMax(n),
		func() []*node { return []*node{graph.MulScalar(h, 1e30)} },
		func() []*node { return []*node{h} })[0]
	loss := graph.ReduceMean(graph.Square(graph.Sub(graph.ReduceSum(h, 1), graph.Reshape(y, batch))))
	b.Loss("loss", loss)
	turns := ops.While(func(v []*node) *node { return graph.LessThan(v[0], graph.Scalar(g, dtypes.Float32, 100)) },
		func(v []*node) []*node {
			return []*node{graph.Add(graph.MulScalar(v[0], 3), loss), graph.AddScalar(v[1], 1)}
		}, graph.ScalarOne(g, dtypes.Float32), graph.ScalarZero(g, dtypes.Float32))
	b.Metric("turns", turns[1])
	b.Metric("places", graph.Scalar(g, dtypes.Float32, float64(places)))
}

func sequences(t *testing.T, n, places, features int) *data.Set {
	x, y, lengths := make([]float32, n*places*features), make([]float32, n), make([]int32, n)
	for i := range x {
		x[i] = float32(math.Mod(0.37*float64(i+1), 2) - 1)
	}
	for i := range y {
		lengths[i] = int32(i%places + 1)
		y[i] = x[i*places*features]
	}
	set, err := data.New(data.X(x, n, places, features), data.Y(y, n), data.Field{Name: "n", Array: data.Array{Flat: lengths, Dims: []int{n}}})
	require.NoError(t, err)
	return set
}

// Eager calls the bodies place by place and has no While: the other strategies must have the same results.
func TestStrategies(t *testing.T) {
	set := sequences(t, 16, 6, 3)
	type figures struct{ losses, turns, u, w, seen, rare []float64 }
	run := func(t *testing.T, s strategies.Strategy, devices int) (f figures) {
		state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.05).Done())), managed.WithSeed(7))
		require.NoError(t, err)
		step := managed.TrainStep(recurrent)
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(8), loop.Until(loop.Steps(12)))
		require.NoError(t, err)
		_, f.losses, err = result.History.Series("loss")
		require.NoError(t, err)
		_, f.turns, err = result.History.Series("turns")
		require.NoError(t, err)
		for name, to := range map[string]*[]float64{"/u": &f.u, "/w": &f.w, "/count/seen": &f.seen, "/count/rare": &f.rare} {
			v, err := state.Value(name)
			require.NoError(t, err)
			for _, x := range tensors.MustCopyFlatData[float32](v) {
				*to = append(*to, float64(x))
			}
		}
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
		return f
	}
	want := run(t, strategies.Eager(plugintest.Devices(t, 1)), 1)
	require.Equal(t, []float64{12 * 6 * 3}, want.seen)
	require.NotZero(t, want.rare[0])
	require.Less(t, want.rare[0], 12.0*6)
	require.Less(t, want.losses[11], want.losses[0]*0.9, "it learns")
	for name, open := range map[string]func() strategies.Strategy{
		"jit": func() strategies.Strategy { return strategies.Jit(plugintest.CPU(t)) },
		"data parallel": func() strategies.Strategy {
			s, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
			require.NoError(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, open(), 1)
			require.InDeltaSlice(t, want.losses, got.losses, 1e-4*want.losses[0])
			require.Equal(t, want.turns, got.turns)
			require.Equal(t, want.seen, got.seen)
			require.Equal(t, want.rare, got.rare)
			require.InDeltaSlice(t, want.u, got.u, 5e-4)
			require.InDeltaSlice(t, want.w, got.w, 5e-4)
		})
	}
}

// lower builds a step without running it.
func lower(t *testing.T, build managed.Build) error {
	t.Helper()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer state.Close()
	step := managed.TrainStep(build)
	defer step.Close()
	for batch, err := range sequences(t, 4, 3, 2).Batches(4).All() {
		require.NoError(t, err)
		_, _, err = step.Step(t.Context(), state, batch)
		return err
	}
	return nil
}

func TestWhatABodyMakesStaysThere(t *testing.T) {
	leak := func(use func(b *managed.Builder, inside *node)) error {
		return lower(t, func(b *managed.Builder) {
			x := b.Field("x")
			w := b.Scope().VariableWithShape("w", shapes.Make(dtypes.Float32, 2)).NodeValue(x.Graph())
			var inside *node
			last, _ := ops.Scan([]*node{graph.ReduceSum(x, 1)}, []*node{x}, func(carry, at []*node) (next, out []*node) {
				inside = graph.Add(carry[0], graph.Mul(at[0], graph.BroadcastToDims(graph.Reshape(w, 1, 2), 4, 2)))
				return []*node{inside}, nil
			}, ops.Axis(1))
			b.Loss("loss", graph.ReduceAllSum(last[0]))
			use(b, inside)
		})
	}
	require.ErrorIs(t, lower(t, func(b *managed.Builder) { // an If of GoMLX, whose condition is not of the body
		x := b.Field("x")
		var inside *node
		ops.Scan([]*node{graph.ReduceSum(x, 1)}, nil, func(carry, _ []*node) (next, out []*node) {
			inside = rawIf(graph.Const(x.Graph(), true), func() *node { return graph.Mul(carry[0], carry[0]) }, func() *node { return carry[0] })
			return []*node{inside}, nil
		}, ops.Length(2))
		b.Loss("loss", graph.ReduceAllSum(inside))
	}), hlo.ErrTraced)
	require.NoError(t, leak(func(*managed.Builder, *node) {}))
	for name, use := range map[string]func(b *managed.Builder, inside *node){
		"a loss":    func(b *managed.Builder, inside *node) { b.Loss("other", graph.ReduceAllSum(inside)) },
		"an output": func(b *managed.Builder, inside *node) { b.Output("o", inside) },
		"another body": func(b *managed.Builder, inside *node) {
			last, _ := ops.Scan([]*node{graph.ZerosLike(inside)}, nil, func(carry, _ []*node) (next, out []*node) {
				return []*node{graph.Add(carry[0], inside)}, nil
			}, ops.Length(2))
			b.Output("o", last[0])
		},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, leak(use), hlo.ErrTraced) })
	}
}

// A value from outside stays usable after a body returned it unchanged.
func TestWhatABodyHandsOn(t *testing.T) {
	require.NoError(t, lower(t, func(b *managed.Builder) {
		x := graph.ReduceAllMean(b.Field("x"))
		y := ops.Cond(graph.Const(x.Graph(), true), func() []*node { return []*node{graph.Sin(graph.StopGradient(x))} }, func() []*node { return []*node{x} })
		w := b.Scope().VariableWithValue("w", float32(2)).NodeValue(b.Graph())
		b.Loss("loss", graph.Mul(w, graph.Add(x, y[0])))
	}))
}

// compiled builds a graph of one parameter and runs it.
func compiled(t *testing.T, x any, build func(x *node) []*node) []*tensors.Tensor {
	t.Helper()
	g := graph.NewGraph(plugintest.CPU(t), "flow")
	defer g.Finalize()
	value := tensors.MustFromAnyValue(x)
	g.Compile(build(graph.Parameter(g, "x", value.Shape()))...)
	return g.Run(value)
}

func TestScan_addsUp(t *testing.T) {
	x := [][]float64{{1, 10}, {2, 20}, {3, 30}, {4, 40}} // places, batch
	sum := func(x *node, options ...ops.Option) []*node {
		last, outs := ops.Scan([]*node{graph.Const(x.Graph(), []float64{0.5, 0.25})}, []*node{x}, func(carry, at []*node) (next, out []*node) {
			y := graph.Add(carry[0], at[0])
			return []*node{y}, []*node{y, graph.Neg(at[0])}
		}, options...)
		return append(last, outs...)
	}
	got := compiled(t, x, func(x *node) []*node { return sum(x) })
	require.Equal(t, []float64{10.5, 100.25}, got[0].Value())
	require.Equal(t, [][]float64{{1.5, 10.25}, {3.5, 30.25}, {6.5, 60.25}, {10.5, 100.25}}, got[1].Value())
	require.Equal(t, [][]float64{{-1, -10}, {-2, -20}, {-3, -30}, {-4, -40}}, got[2].Value())
	got = compiled(t, x, func(x *node) []*node { return sum(x, ops.Reverse(), nil) })
	require.Equal(t, [][]float64{{10.5, 100.25}, {9.5, 90.25}, {7.5, 70.25}, {4.5, 40.25}}, got[1].Value())
	got = compiled(t, x, func(x *node) []*node { return sum(x, ops.Lengths(graph.Const(x.Graph(), []int32{2, 4}))) })
	require.Equal(t, []float64{3.5, 100.25}, got[0].Value())
	require.Equal(t, [][]float64{{1.5, 10.25}, {3.5, 30.25}, {0, 60.25}, {0, 100.25}}, got[1].Value())
	got = compiled(t, x, func(x *node) []*node {
		return sum(x, ops.Reverse(), ops.Lengths(graph.Const(x.Graph(), []int32{2, 0})))
	})
	require.Equal(t, []float64{3.5, 0.25}, got[0].Value())
	require.Equal(t, [][]float64{{3.5, 0}, {2.5, 0}, {0, 0}, {0, 0}}, got[1].Value())
	got = compiled(t, x, func(x *node) []*node { // the same slice for both
		last, outs := ops.Scan([]*node{graph.Const(x.Graph(), []float64{0.5, 0.25})}, []*node{x}, func(carry, at []*node) (next, out []*node) {
			both := []*node{graph.Add(carry[0], at[0])}
			return both, both
		}, ops.Lengths(graph.Const(x.Graph(), []int32{2, 4})))
		return append(last, outs...)
	})
	require.Equal(t, []float64{3.5, 100.25}, got[0].Value())
	require.Equal(t, [][]float64{{1.5, 10.25}, {3.5, 30.25}, {0, 60.25}, {0, 100.25}}, got[1].Value())
	got = compiled(t, [][]float64{{1, 2, 3, 4}, {10, 20, 30, 40}}, func(x *node) []*node { return sum(x, ops.Axis(1)) })
	require.Equal(t, [][]float64{{1.5, 3.5, 6.5, 10.5}, {10.25, 30.25, 60.25, 100.25}}, got[1].Value())
}

// A branch that is not run has gradient 0, even if its gradient would be NaN.
func TestBranches(t *testing.T) {
	branches := func(x *node) []func() []*node {
		return []func() []*node{
			func() []*node { return []*node{graph.Sqrt(x)} },
			func() []*node { return []*node{graph.MulScalar(x, 3)} },
			func() []*node { return []*node{graph.Neg(graph.Log(graph.Neg(x)))} },
		}
	}
	for number, want := range map[int32][2]float64{0: {2, 0.25}, -5: {2, 0.25}, 1: {12, 3}} {
		got := compiled(t, 4.0, func(x *node) []*node {
			y := ops.Switch(graph.Const(x.Graph(), number), branches(x)...)
			return append(y, ops.Gradient(y[0], x)...)
		})
		require.Equal(t, want, [2]float64{tensors.ToScalar[float64](got[0]), tensors.ToScalar[float64](got[1])})
	}
	for x, want := range map[float64][2]float64{4: {2, 0.25}, -1: {-3, 3}} {
		got := compiled(t, x, func(x *node) []*node {
			b := branches(x)
			y := ops.Cond(graph.GreaterThan(x, graph.ScalarZero(x.Graph(), x.DType())), b[0], b[1])
			return append(y, ops.Gradient(y[0], x)...)
		})
		require.Equal(t, want, [2]float64{tensors.ToScalar[float64](got[0]), tensors.ToScalar[float64](got[1])})
	}
}

// A branch sets and creates variables and draws random numbers, without effect on other branches.
func TestBranches_variables(t *testing.T) {
	run := func(s strategies.Strategy) (values []float64) {
		state, err := managed.New(s, managed.WithOptimizer(optim.New(0.1)), managed.WithSeed(3))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := managed.TrainStep(func(b *managed.Builder) {
			g, scope := b.Graph(), b.Scope()
			x := graph.ReduceAllMean(b.Field("x"))
			w := scope.VariableWithValue("w", float32(2)).NodeValue(g)
			count := scope.At("count").VariableWithValue("steps", float32(0)).SetTrainable(false)
			seen := scope.At("count").VariableWithValue("seen", float32(0)).SetTrainable(false)
			n := count.NodeValue(g)
			count.SetNodeValue(graph.OnePlus(n))
			add := func(by float64) {
				seen.SetNodeValue(graph.AddScalar(seen.NodeValue(g), by))
			}
			y := ops.Switch(graph.ConvertDType(n, dtypes.Int32),
				func() []*node { add(1); return []*node{graph.Mul(w, x)} },
				func() []*node {
					add(10)
					u := scope.At("inside").VariableWithValue("u", float32(0.5)).NodeValue(g)
					return []*node{graph.Mul(graph.Add(w, u), graph.ReduceAllMean(scope.RandomUniform(g, shapes.Make(dtypes.Float32, 3))))}
				},
				func() []*node { add(100); add(1000); return []*node{graph.Mul(graph.Mul(w, seen.NodeValue(g)), x)} })[0]
			b.Loss("loss", graph.Square(y))
			b.Metric("noise", graph.ReduceAllMean(scope.RandomUniform(g, shapes.Make(dtypes.Float32, 3))))
		})
		defer func() { require.NoError(t, step.Close()) }()
		for range 4 {
			_, logs, err := step.Step(t.Context(), state, data.Batch{Fields: []data.Field{data.X([]float32{0.5, 0.25}, 2, 1)}})
			require.NoError(t, err)
			for _, name := range []string{"loss", "noise"} {
				v, err := logs.Float(name)
				require.NoError(t, err)
				values = append(values, v)
			}
		}
		for _, name := range []string{"/w", "/inside/u", "/count/seen"} {
			v, err := state.Value(name)
			require.NoError(t, err)
			values = append(values, float64(tensors.ToScalar[float32](v)))
		}
		return values
	}
	parallel, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
	require.NoError(t, err)
	want := run(strategies.Eager(plugintest.Devices(t, 1)))
	require.Equal(t, 1+10+2*(100+1000.0), want[len(want)-1])
	for name, s := range map[string]strategies.Strategy{"jit": strategies.Jit(plugintest.CPU(t)), "data parallel": parallel} {
		t.Run(name, func(t *testing.T) {
			for i, v := range run(s) {
				require.InEpsilon(t, want[i], v, 1e-5, i)
			}
		})
	}
}

func TestWhile(t *testing.T) {
	got := compiled(t, 1.0, func(x *node) []*node {
		bound := graph.MulScalar(x, 1000)
		return ops.While(func(v []*node) *node { return graph.LessThan(v[0], bound) },
			func(v []*node) []*node { return []*node{graph.Add(v[0], v[0]), graph.OnePlus(v[1])} }, x, graph.Const(x.Graph(), int32(0)))
	})
	require.Equal(t, 1024.0, got[0].Value())
	require.Equal(t, int32(10), got[1].Value())
}

func TestWrongArguments(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "wrong")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4, 3))
	bit := graph.Parameter(g, "bit", shapes.Make(dtypes.Bool))
	same := func(carry, at []*node) (next, out []*node) { return carry, at }
	one := func() []*node { return []*node{x} }
	list := func(n ...*node) []*node { return n }
	for want, f := range map[string]func(){
		"ops: scan: the body is nil":                                               func() { ops.Scan(nil, list(x), nil) },
		"ops: scan: nothing is carried and nothing is stacked":                     func() { ops.Scan(nil, nil, same, ops.Length(2)) },
		"ops: scan: the number of places is not known":                             func() { ops.Scan(list(x), nil, same) },
		"ops: scan: 0 places, expected at least one":                               func() { ops.Scan(list(x), nil, same, ops.Length(0)) },
		"ops: scan: stack 0 is (Float32)[4, 3]: 4 places along axis 0, expected 5": func() { ops.Scan(nil, list(x), same, ops.Length(5)) },
		"ops: scan: stack 0 is (Float32)[4, 3], expected an axis 2 of places":      func() { ops.Scan(nil, list(x), same, ops.Axis(2)) },
		"ops: scan: a carried value, a stack or Lengths is nil":                    func() { ops.Scan(list(nil), nil, same, ops.Length(1)) },
		"ops: scan: Lengths are (Float32)[4, 3], expected whole numbers [batch]":   func() { ops.Scan(nil, list(x), same, ops.Lengths(x)) },
		"ops: scan: the body returns 0 carried values, expected 1, as it receives": func() {
			ops.Scan(list(x), nil, func(_, _ []*node) (next, out []*node) { return nil, nil }, ops.Length(1))
		},
		"ops: scan: the body returns carried value 0 as (Float32), expected (Float32)[4, 3], as it receives": func() {
			ops.Scan(list(x), nil, func(c, _ []*node) (next, out []*node) { return list(graph.ReduceAllSum(c[0])), nil }, ops.Length(1))
		},
		"ops: scan: output 0 is nil": func() { ops.Scan(nil, list(x), func(_, _ []*node) (next, out []*node) { return nil, list(nil) }) },
		"ops: scan: the body draws random numbers, which would be the same in each turn": func() {
			ops.Scan(nil, list(x), func(_, at []*node) (next, out []*node) {
				_, r := graph.RandomUniform(graph.Const(g, []uint64{1, 2, 3}), at[0].Shape())
				return nil, list(r)
			})
		},
		"ops: while: the body draws random numbers": func() {
			ops.While(func([]*node) *node { return bit }, func(v []*node) []*node {
				_, r := graph.RandomUniform(graph.Const(g, []uint64{1, 2, 3}), v[0].Shape())
				return list(r)
			}, x)
		},
		"ops: cond: condition (Float32)[4, 3], expected a scalar of bool": func() { ops.Cond(x, one, one) },
		"ops: cond: function 1 is nil":                                    func() { ops.Cond(bit, one, nil) },
		"ops: cond: function 0 returns nothing":                           func() { ops.Cond(bit, func() []*node { return nil }, one) },
		"ops: cond: function 1 returns (Float32) as result 0, the first one (Float32)[4, 3]": func() {
			ops.Cond(bit, one, func() []*node { return list(graph.ReduceAllSum(x)) })
		},
		"ops: switch: number nil, expected a scalar of whole numbers": func() { ops.Switch(nil, one) },
		"ops: switch: no function given":                              func() { ops.Switch(graph.Const(g, int32(0))) },
		"ops: while: condition (Float32)[4, 3], expected a scalar of bool": func() {
			ops.While(func(v []*node) *node { return v[0] }, func(v []*node) []*node { return v }, x)
		},
		"ops: while: a condition, a body and at least one value are needed": func() { ops.While(nil, nil, x) },
		"the loss depends on an If or a While": func() {
			y := ops.While(func(v []*node) *node { return bit }, func(v []*node) []*node { return v }, x)
			ops.Gradient(graph.ReduceAllSum(y[0]), x)
		},
	} {
		require.ErrorContains(t, graphs.Catch(f), want)
	}
}
