package ops_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

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
