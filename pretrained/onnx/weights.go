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
func (m message) takeWeights() (weights []weight) {
	constant := map[string]bool{}
	m.prepare(constant)
	for _, t := range m.list("initializer") {
		w := weight{t.text("name"), shapes.Shape{DType: kinds[t.number("data_type")].dtype, Dimensions: t.dims()}, t.bytes("raw_data")}
		if w.shape.DType.IsFloat() && w.shape.Rank() > 0 && w.shape.Size() > 0 && !constant[w.name] {
			weights = append(weights, w)
			continue
		}
		m.keep("input", func(v message) bool { return v.text("name") != w.name })
		m.addNode("Constant", w.name).addTensor("value", t)
	}
	m.clear("initializer")
	return weights
}

// prepare collects the names of inputs that are not trained, and writes operators that onnx-gomlx lacks by others.
func (m message) prepare(constant map[string]bool) {
	for _, node := range m.list("node") {
		inputs := node.texts("input")
		for _, i := range operators[node.text("op_type")].constant {
			if i < len(inputs) {
				constant[inputs[i]] = true
			}
		}
		for _, a := range node.list("attribute") {
			if a.has("g") {
				a.child("g").prepare(constant)
			}
		}
		if node.text("op_type") == "GlobalMaxPool" {
			m.maximum(node, inputs[0])
		}
	}
}

// maximum makes a GlobalMaxPool a ReduceMax over the axes from 2 on.
func (m message) maximum(node message, x string) {
	own := func(name string) string { return node.texts("output")[0] + " | " + name }
	m.addNode("Shape", own("dims"), x)
	m.addNode("Size", own("rank"), own("dims"))
	for i, name := range []string{"step", "start"} { // initializers 1 and 2, which become constants
		t := m.add("initializer")
		t.set("name", own(name))
		t.set("data_type", int32(7))
		t.set("raw_data", []byte{byte(i + 1), 0, 0, 0, 0, 0, 0, 0})
	}
	m.addNode("Range", own("axes"), own("start"), own("rank"), own("step"))
	node.set("op_type", "ReduceMax")
	node.addText("input", own("axes"))
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
