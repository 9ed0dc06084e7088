package ops_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// GoMLX's backend in Go has no dynamic slices.
func TestGoPlugin(t *testing.T) {
	program := graph.MustNewExec(plugintest.Go(t), func(xs *graph.Node) (sum, each *graph.Node) {
		zero := graph.ScalarZero(xs.Graph(), xs.DType())
		last, outs := ops.Scan([]*graph.Node{zero}, []*graph.Node{xs}, func(carry, x []*graph.Node) (next, out []*graph.Node) {
			sum := graph.Add(graph.MulScalar(carry[0], 0.5), x[0])
			return []*graph.Node{sum}, []*graph.Node{sum}
		})
		return last[0], outs[0]
	})
	defer program.Finalize()
	results := program.MustCall([]float32{8, 4, 2, 1})
	require.Equal(t, []float32{8, 8, 6, 4}, results[1].Value())
	require.ErrorContains(t, graphs.Catch(func() {
		graph.MustNewExec(plugintest.Go(t), func(x *graph.Node) *graph.Node {
			f := func() []*graph.Node { return []*graph.Node{x} }
			return ops.Switch(x, f, f)[0]
		}).MustCall(int32(1))
	}), "ops: switch: the backend \"Go Backend\" has no DynamicSlice: use one of XLA's plugins")
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
