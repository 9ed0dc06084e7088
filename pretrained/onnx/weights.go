package onnx

import (
	"fmt"
	"io"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/managed"
)

// takeWeights removes a graph's initializers. The floating-point ones of at least one axis are returned, the others
// become nodes Constant. So onnx-gomlx has no variables, and computes with the values that it is given.
func (m message) takeWeights(static map[string]bool) (weights []weight) {
	for _, t := range m.list("initializer") {
		w := weight{t.text("name"), shapes.Shape{DType: kinds[t.number("data_type")].dtype, Dimensions: t.dims()}, t.bytes("raw_data")}
		if w.shape.DType.IsFloat() && w.shape.Rank() > 0 && w.shape.Size() > 0 && !static[w.name] {
			weights = append(weights, w)
			continue
		}
		m.keep("input", func(v message) bool { return v.text("name") != w.name })
		m.addNode("Constant", w.name).addTensor("value", t)
	}
	m.clear("initializer")
	return weights
}

func (w weight) variable() string { return strings.ReplaceAll(w.name, model.ScopeSeparator, "|") }

// Outputs builds the network at a scope and returns its outputs by name. input returns a field of the batch.
func (n *Network) Outputs(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
	values := map[string]*graph.Node{}
	for _, in := range n.Inputs {
		values[in.Name] = input(in.Name)
	}
	g := values[n.Inputs[0].Name].Graph()
	for _, w := range n.weights {
		missing := func(*graph.Graph, shapes.Shape) *graph.Node {
			panic(fmt.Errorf("onnx: the state lacks the weight %q: make it with Network.Weights, and build the network at the scope \"model\"", w.name))
		}
		values[w.name] = scope.WithInitializer(missing).VariableWithShape(w.variable(), w.shape).NodeValue(g)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]*graph.Node{}
	for i, node := range n.parsed.CallGraph(nil, g, values, n.names...) {
		out[n.names[i]] = node
	}
	return out
}

// Apply uses a network of one input "x" and one output as a layer.
func (n *Network) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return flaxlike.Functional(n.Outputs).Apply(scope, x)
}

// Weights sets the file's weights in a state, for the network at the scope "model". Other variables, such as a new
// head's, are drawn.
func (n *Network) Weights() managed.Option {
	return func(s *managed.State) error {
		values := map[string]checkpoint.Tensor{}
		for _, w := range n.weights {
			to, err := fileDType(w.shape.DType)
			if err != nil {
				return err
			}
			values["/model/"+w.variable()] = checkpoint.Tensor{DType: to, Dims: w.shape.Dimensions, Write: func(out io.Writer) error {
				_, err := out.Write(w.data)
				return err
			}}
		}
		if err := managed.WithValues(values)(s); err != nil {
			return err
		}
		return managed.DrawMissing(func(name string) bool { _, given := values[name]; return !given })(s)
	}
}

func fileDType(d dtypes.DType) (safetensors.DType, error) {
	return safetensors.ParseDType(dtype.Type(d).InFile())
}
