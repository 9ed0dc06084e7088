package onnx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/pretrained/onnx"
	"github.com/lazo-ml/lazo/strategies"
)

// Gradients are those of torch, of the model that was exported.
func TestGradients(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_dynamo"} {
		e := exampleOf(t, name)
		n := opened(t, name, onnx.Options{})
		x := e.Inputs["x"]
		logs := run(t, n, data.Batch{Size: x.Dims[0], Fields: []data.Field{data.X(x.flat(t), x.Dims...)}}, func(b *managed.Builder) {
			scope := b.Scope().In("model")
			loss := graph.ReduceAllSum(graph.Square(n.Outputs(scope, b.Field)["logits"]))
			var names []string
			var values []*graph.Node
			for v := range scope.IterVariables() {
				names, values = append(names, v.Name()), append(values, v.NodeValue(b.Graph()))
			}
			require.Len(t, names, len(e.Gradients))
			for i, gradient := range graph.Gradient(loss, values...) {
				b.Output(names[i], gradient)
			}
		})
		require.Len(t, e.Gradients, 4)
		for name, of := range e.Gradients {
			got, err := managed.Array(logs, name)
			require.NoError(t, err)
			require.Equal(t, of.Dims, got.Dims)
			for i, want := range of.numbers(t) {
				require.InDelta(t, want, got.Flat.([]float32)[i], 1e-5*max(1, math.Abs(want)))
			}
		}
	}
}

// The norm of all gradients is torch's, also where the file has the weights by other names, in another order, or two as
// one.
func TestGradients_norm(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_dynamo", "texts", "texts_dynamo", "sequence"} {
		e := exampleOf(t, name)
		n := opened(t, name, onnx.Options{})
		batch := data.Batch{}
		for _, in := range n.Inputs {
			of := e.Inputs[in.Name]
			batch.Size, batch.Fields = of.Dims[0], append(batch.Fields, data.Named(in.Name, of.flat(t), of.Dims...))
		}
		logs := run(t, n, batch, func(b *managed.Builder) {
			scope := b.Scope().In("model")
			loss := graph.ReduceAllSum(graph.Square(n.Outputs(scope, b.Field)["logits"]))
			var values []*graph.Node
			for v := range scope.IterVariables() {
				values = append(values, v.NodeValue(b.Graph()))
			}
			sum := graph.ScalarZero(b.Graph(), loss.DType())
			for _, gradient := range graph.Gradient(loss, values...) {
				sum = graph.Add(sum, graph.ReduceAllSum(graph.Square(gradient)))
			}
			b.Output("norm", graph.Sqrt(sum))
		})
		got, err := managed.Array(logs, "norm")
		require.NoError(t, err)
		require.InEpsilon(t, e.Norm, got.Flat.([]float32)[0], 1e-5, name)
	}
}

// Files whose graph does not fit the input are errors of the step that name the node and its operator, also where it
// became several nodes.
func TestOutputs_faults(t *testing.T) {
	var all []struct {
		Model []byte
		Error string
	}
	read(t, "faults.json.gz", &all)
	for _, row := range all {
		n, err := onnx.Open(t.Context(), written(t, row.Model), onnx.Options{})
		require.NoError(t, err)
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), n.Weights())
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) { b.Output("y", n.Outputs(b.Scope().In("model"), b.Field)["z"]) })
		_, _, err = step.Step(t.Context(), state, data.Batch{Size: 2, Fields: []data.Field{data.X(make([]float32, 6), 2, 3)}})
		require.ErrorContains(t, err, "weights_test.go:")
		require.ErrorContains(t, err, ": onnx: "+row.Error)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	require.Len(t, all, 7)
}

func opened(t *testing.T, name string, options onnx.Options) *onnx.Network {
	t.Helper()
	n, err := onnx.Open(t.Context(), "testdata/"+name+".onnx", options)
	require.NoError(t, err)
	return n
}

// headed is the network of mlp.onnx up to its activation, with another head.
type headed struct{ *onnx.Network }

func (h headed) Outputs(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
	for _, features := range h.Network.Outputs(scope, input) {
		return map[string]*graph.Node{"logits": nn.Dense{Units: 2}.Apply(scope.In("head"), features)}
	}
	return nil
}

// Fine-tuning learns classes, with the file's head or a new one, by all weights.
func TestFit(t *testing.T) {
	features := opened(t, "mlp", onnx.Options{Outputs: []string{"/1/Tanh_output_0"}})
	for name, network := range map[string]nn.Layer{"all": opened(t, "mlp", onnx.Options{}), "head": headed{features}} {
		t.Run(name, func(t *testing.T) {
			const n = 128
			r := rand.New(rand.NewPCG(1, 2))
			x, y := make([]float32, 4*n), make([]int32, n)
			for i := range y {
				for j := range 4 {
					x[4*i+j] = float32(r.NormFloat64())
				}
				if x[4*i]-x[4*i+3] > 0 {
					y[i] = 1
				}
			}
			set, err := data.New(data.X(x, n, 4), data.Y(y, n))
			require.NoError(t, err)
			m, err := flaxlike.New(t.Context(), network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
				flaxlike.WithLearningRate(0.03), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			before, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			first, err := m.Value("/model/0.weight")
			require.NoError(t, err)
			_, err = m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 20})
			require.NoError(t, err)
			after, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			require.Less(t, before["accuracy"], 0.8)
			require.Greater(t, after["accuracy"], 0.97)
			last, err := m.Value("/model/0.weight")
			require.NoError(t, err)
			require.NotEqual(t, fmt.Sprint(first.Value()), fmt.Sprint(last.Value()))
		})
	}
}

// A network that is built elsewhere than at the scope of its weights does not begin with others.
func TestWeights_elsewhere(t *testing.T) {
	n := opened(t, "mlp", onnx.Options{})
	batch := data.Batch{Size: 1, Fields: []data.Field{data.X(make([]float32, 4), 1, 4)}}
	for name, option := range map[string]managed.Option{"another scope": n.Weights(), "no weights": managed.WithSeed(1)} {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), option)
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) {
			b.Output("y", n.Outputs(b.Scope().In("other"), b.Field)["logits"])
		})
		_, _, err = step.Step(t.Context(), state, batch)
		require.ErrorContains(t, err, `the state lacks the weight "0.weight"`, name)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
}
