package ops_test

import (
	"fmt"
	rand "math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/ops"
)

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

// TestPrograms compares drawn programs of nested loops and branches, and their gradients, with GoMLX's backend in Go.
func TestPrograms(t *testing.T) {
	on := map[string]*xla.Runtime{"ours": openPrograms(t), "reference": plugintest.Go(t)}
	looped, differences, sensitive, infinite := 0, 0, 0, 0
	for seed := range uint64(programs) {
		values := rand.New(rand.NewPCG(seed, 2))
		draws := func(n int) []float64 {
			list := make([]float64, n)
			for i := range list {
				list[i] = values.Float64()*2 - 1
			}
			return list
		}
		x, w := draws(6), draws(4)
		run := func(c control, backend *xla.Runtime) (results [][]float64) {
			g := graph.NewGraph(backend, fmt.Sprint("program ", seed))
			defer g.Finalize()
			xs, ws := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 3, 2)), graph.Parameter(g, "w", shapes.Make(dtypes.Float64, 2, 2))
			y := draw(c, seed, 2, xs, ws)
			for _, n := range g.Nodes() {
				if n.Type() == graph.NodeTypeWhile {
					looped++
					break
				}
			}
			loss := graph.ReduceAllSum(graph.Mul(y, graph.Cos(y)))
			g.Compile(append([]*node{y}, ops.Gradient(loss, xs, ws)...)...)
			for _, o := range g.Run(tensors.FromFlatDataAndDimensions(x, 3, 2), tensors.FromFlatDataAndDimensions(w, 2, 2)) {
				results = append(results, tensors.MustCopyFlatData[float64](o))
			}
			return results
		}
		want, got := run(reference, on["reference"]), run(ours, on["ours"])
		apart, unlimited := false, false
		for i := range want {
			apart = apart || !agrees(want[i], got[i])
			_, finite := distance(want[i], got[i])
			unlimited = unlimited || !finite
		}
		if unlimited {
			infinite++
		}
		if !apart {
			continue
		}
		moves := make([]float64, len(want))
		for n := range uint64(nudged) {
			for of, c := range map[string]control{"reference": reference, "ours": ours} {
				still := map[string][][]float64{"reference": want, "ours": got}[of]
				c.nudge = rand.New(rand.NewPCG(seed, 3+n))
				for i, moved := range run(c, on[of]) {
					d, _ := distance(still[i], moved)
					moves[i] = max(moves[i], d)
				}
			}
		}
		wrong := false
		for i := range want {
			if d, _ := distance(want[i], got[i]); !agrees(want[i], got[i]) && d > unsure*moves[i] {
				wrong = true
				t.Errorf("program %d, result %d: %v, expected %v, which roundings move by %v", seed, i, got[i], want[i], moves[i])
			}
		}
		if wrong {
			differences++
		} else {
			sensitive++
			t.Logf("program %d amplifies roundings: %v, expected %v, which roundings move by %v", seed, got, want, moves)
		}
	}
	require.Greater(t, looped, programs/2)
	require.LessOrEqual(t, sensitive+infinite, programs/20, "too few programs can be held to the reference")
	t.Logf("%d programs, %d with loops or branches: %d differences; %d amplify roundings, %d are not finite",
		programs, looped, differences, sensitive, infinite)
}
