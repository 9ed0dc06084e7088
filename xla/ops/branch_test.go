package ops_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
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

func TestWhile(t *testing.T) {
	got := compiled(t, 1.0, func(x *node) []*node {
		bound := graph.MulScalar(x, 1000)
		return ops.While(func(v []*node) *node { return graph.LessThan(v[0], bound) },
			func(v []*node) []*node { return []*node{graph.Add(v[0], v[0]), graph.OnePlus(v[1])} }, x, graph.Const(x.Graph(), int32(0)))
	})
	require.Equal(t, 1024.0, got[0].Value())
	require.Equal(t, int32(10), got[1].Value())
}
