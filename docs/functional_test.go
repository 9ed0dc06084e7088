package docs_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla/ops"
)

// whole are the numbers that functional.py makes.
func whole(n, a, m int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(i*a%m-m/2) / 8
	}
	return list
}

// with begins a kernel with given numbers.
func with(flat []float32, dims ...int) model.VariableInitializer {
	return func(g *graph.Graph, _ shapes.Shape) *graph.Node {
		return graph.Const(g, tensors.FromFlatDataAndDimensions(flat, dims...))
	}
}

// SAM and MAML compute layers on other values than their variables', and follow JAX.
func TestS23_layersOnGivenValues(t *testing.T) {
	// network has its layers at fixed places, so that it can be built several times in one step.
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		h := nn.Dense{Units: 4, Kernel: with(whole(12, 5, 11), 3, 4)}.Apply(scope.At("hidden"), x)
		return nn.Dense{Units: 1, Kernel: with(whole(4, 3, 7), 4, 1)}.Apply(scope.At("out"), graph.Tanh(h))
	}
	squared := func(scope *model.Scope, x, y *graph.Node) *graph.Node {
		return graph.ReduceAllMean(graph.Square(graph.Sub(network(scope, x), y)))
	}
	// trainable are the variables of a scope and their values.
	trainable := func(scope *model.Scope, g *graph.Graph) (variables []*model.Variable, values []*graph.Node) {
		for v := range scope.IterVariables() {
			if v.Trainable {
				variables, values = append(variables, v), append(values, v.NodeValue(g))
			}
		}
		return variables, values
	}
	// given calls f while the variables have other values.
	given := func(g *graph.Graph, variables []*model.Variable, values []*graph.Node, f func() *graph.Node) *graph.Node {
		for i, v := range variables {
			own := v.NodeValue(g)
			v.SetNodeValue(values[i])
			defer v.SetNodeValue(own)
		}
		return f()
	}
	sam := func(b *managed.Builder) {
		g, scope, x, y := b.Graph(), b.Scope().At("model"), b.Field("x"), b.Field("y")
		first := squared(scope, x, y)
		variables, values := trainable(scope, g)
		slopes := ops.Gradient(first, values...)
		length := graph.ScalarZero(g, first.DType())
		for _, s := range slopes {
			length = graph.Add(length, graph.ReduceAllSum(graph.Square(s)))
		}
		moved := make([]*graph.Node, len(values))
		for i, s := range slopes {
			moved[i] = graph.Add(values[i], graph.StopGradient(graph.Div(graph.MulScalar(s, 0.05), graph.Sqrt(length))))
		}
		b.Loss("loss", given(g, variables, moved, func() *graph.Node { return squared(scope, x, y) }))
	}
	maml := func(b *managed.Builder) {
		g, scope, x, y := b.Graph(), b.Scope().At("model"), b.Field("x"), b.Field("y")
		half := func(v *graph.Node, from, to int) *graph.Node { return graph.Slice(v, graph.AxisRange(from, to)) }
		support := squared(scope, half(x, 0, 4), half(y, 0, 4))
		variables, values := trainable(scope, g)
		adapted := make([]*graph.Node, len(values))
		for i, s := range ops.Gradient(support, values...) {
			adapted[i] = graph.Sub(values[i], graph.MulScalar(s, 0.2))
		}
		b.Loss("loss", given(g, variables, adapted, func() *graph.Node { return squared(scope, half(x, 4, 8), half(y, 4, 8)) }))
	}
	var want map[string]map[string][]float64
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/functional.json")), &want)) // written by functional.py there
	set := must.M1(data.New(data.X(whole(24, 7, 17), 8, 3), data.Y(whole(8, 5, 13), 8, 1)))
	batch := must.M1(data.Peek(set.Batches(8).All()))
	for name, build := range map[string]managed.Build{"sam": sam, "maml": maml} {
		state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.02))))
		step := managed.TrainStep(build)
		for range 100 {
			must.M2(step.Step(t.Context(), state, batch))
		}
		var got []float64
		for _, path := range []string{"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"} {
			for _, v := range must.M1(tensors.CopyFlatData[float32](must.M1(state.Value("/model/" + path)))) {
				got = append(got, float64(v))
			}
		}
		apart := func(list []float64) (most float64) {
			for i, v := range want[name]["float64"] {
				most = max(most, math.Abs(list[i]-v))
			}
			return most
		}
		ratio := apart(got) / apart(want[name]["float32"])
		t.Logf("S23: %s, 100 steps: %.2g of JAX's own float32 error, %.1g", name, ratio, apart(want[name]["float32"]))
		require.LessOrEqual(t, ratio, 2.0, name)
		must.M(step.Close())
		must.M(state.Close())
	}
}

// A test step trains nothing; what its build sets is kept. A nested model's variables are found by their path.
func TestS23_nestedModels(t *testing.T) {
	encoder := func(scope *model.Scope, x *graph.Node) *graph.Node {
		h := nn.Dense{Units: 4}.Apply(scope.In("first"), x)
		return nn.Dense{Units: 2}.Apply(scope.In("second"), graph.Tanh(h))
	}
	twins := func(b *managed.Builder) {
		scope, x := b.Scope().In("twins"), b.Field("x")
		one := encoder(scope.In("encoder"), x)                // a new part: a second In of the name is an error
		two := encoder(scope.Shared("encoder"), graph.Neg(x)) // the same variables: they must be there
		b.Loss("loss", graph.ReduceAllMean(graph.Square(graph.Sub(one, two))))
		kernel := b.Scope().Store().GetVariable("/twins/encoder/first/kernel") // nil if there is none
		b.Metric("size", graph.ReduceAllMax(graph.Abs(kernel.NodeValue(b.Graph()))))
		seen := b.Scope().At("seen").VariableWithValue("batches", int64(0)).SetTrainable(false)
		seen.SetNodeValue(graph.AddScalar(seen.NodeValue(b.Graph()), 1))
	}
	state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.1))))
	defer state.Close()
	train, test := managed.TrainStep(twins), managed.TestStep(twins)
	defer train.Close()
	defer test.Close()
	set := must.M1(data.New(data.X(whole(24, 7, 17), 8, 3)))
	batch := must.M1(data.Peek(set.Batches(8).All()))
	must.M2(train.Step(t.Context(), state, batch))
	const path = "/twins/encoder/second/kernel"
	before := must.M1(state.Value(path)).Value()
	must.M2(test.Step(t.Context(), state, batch))
	require.Equal(t, before, must.M1(state.Value(path)).Value(), "a test step trains nothing")
	require.EqualValues(t, 2, must.M1(state.Value("/seen/batches")).Value(), "what a build sets is kept, in a test step too")
}
