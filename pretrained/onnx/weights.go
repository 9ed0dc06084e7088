package onnx

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
)

// takeWeights removes a graph's initializers. The floating-point ones of at least one axis are returned, the others
// become nodes Constant. So onnx-gomlx has no variables, and computes with given values.
func (m message) takeWeights(static map[string]bool) (weights []weight) {
	names := map[string]bool{}
	for _, t := range m.list("initializer") {
		kind := t.number("data_type")
		w := weight{t.text("name"), kind, shapes.Shape{DType: kinds[kind].dtype, Dimensions: t.dims()}, t.bytes("raw_data")}
		names[w.name] = true
		if w.shape.DType.IsFloat() && w.shape.Rank() > 0 && w.shape.Size() > 0 && !static[w.name] {
			weights = append(weights, w)
			continue
		}
		m.addNode("Constant", w.name).addTensor("value", t)
	}
	m.clear("initializer")
	m.keep("input", func(v message) bool { return !names[v.text("name")] }) // older files declare them
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
	all, err := n.call(g, values, n.names)
	if err != nil {
		panic(n.located(g, values, err))
	}
	out := map[string]*graph.Node{}
	for i, node := range all {
		out[n.names[i]] = node
	}
	return out
}

func (n *Network) call(g *graph.Graph, values map[string]*graph.Node, names []string) (all []*graph.Node, err error) {
	err = graphs.Catch(func() { all = n.parsed.CallGraph(nil, g, values, names...) })
	if caught, ok := errors.AsType[*graphs.Error](err); ok {
		err = caught.Cause // its line would be the caller's
	}
	return all, err
}

// located finds the node that cannot be built: the last of the shortest failing beginning of the steps.
func (n *Network) located(g *graph.Graph, values map[string]*graph.Node, err error) error {
	at := sort.Search(len(n.steps), func(i int) bool {
		var names []string
		for _, s := range n.steps[:i+1] {
			names = append(names, s.output)
		}
		_, err := n.call(g, values, names)
		return err != nil
	})
	if at == len(n.steps) { // an input
		return fmt.Errorf("onnx: %w", err)
	}
	_, err = n.call(g, values, []string{n.steps[at].output})
	return fmt.Errorf("onnx: %s: %w", n.steps[at].label, err)
}

type step struct{ output, label string }

func stepsTo(g message, outputs []string) (all []step) {
	made := map[string]message{}
	for _, node := range g.list("node") {
		for _, name := range node.texts("output") {
			made[name] = node
		}
	}
	var visit func(name string)
	var inputs func(node message)
	inputs = func(node message) {
		for _, name := range node.texts("input") {
			visit(name)
		}
		for _, a := range node.list("attribute") {
			for _, inner := range a.child("g").list("node") {
				inputs(inner)
			}
			for _, name := range a.child("g").named("output") {
				visit(name)
			}
		}
	}
	visit = func(name string) {
		node, found := made[name]
		if !found {
			return
		}
		first := node.texts("output")
		for _, name := range first {
			delete(made, name)
		}
		inputs(node)
		all = append(all, step{first[0], node.text("doc_string")})
	}
	for _, name := range outputs {
		visit(name)
	}
	return all
}

// Apply uses a network of one input "x" and one output as a layer.
func (n *Network) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return flaxlike.Functional(n.Outputs).Apply(scope, x)
}

// Weights sets the file's weights in a state, for the network at the scope "model". Other variables, like a new head's,
// are drawn.
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
