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
	"github.com/lazo-ml/lazo/internal/plugintest"
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

// compiled builds a graph of one parameter and runs it.
func compiled(t *testing.T, x any, build func(x *node) []*node) []*tensors.Tensor {
	t.Helper()
	g := graph.NewGraph(plugintest.CPU(t), "flow")
	defer g.Finalize()
	value := tensors.MustFromAnyValue(x)
	g.Compile(build(graph.Parameter(g, "x", value.Shape()))...)
	return g.Run(value)
}
