package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// rewriter writes what onnx-gomlx lacks, or computes otherwise than ONNX, by other operators.
type rewriter struct {
	constants map[string]message // tensors of initializers and nodes Constant, by name
	static    map[string]bool    // the names of inputs that are not trained
}

// graph rewrites the nodes of a graph and its branches.
func (r *rewriter) graph(g message) error {
	for _, t := range g.list("initializer") {
		r.constants[t.text("name")] = t
	}
	for _, node := range g.list("node") {
		if err := r.node(g, node); err != nil {
			return fmt.Errorf("%s: %w", label(node), err)
		}
	}
	return nil
}

func (r *rewriter) node(g, node message) error {
	inputs := node.texts("input")
	for _, name := range node.texts("output") {
		delete(r.constants, name) // of a branch that has ended
	}
	for _, i := range operators[node.text("op_type")].constant {
		if i < len(inputs) {
			r.static[inputs[i]] = true
		}
	}
	for _, a := range node.list("attribute") {
		if a.has("g") {
			if err := r.graph(a.child("g")); err != nil {
				return err
			}
		}
	}
	switch node.text("op_type") {
	case "Constant":
		for _, a := range node.list("attribute") {
			r.constants[node.texts("output")[0]] = a.child("t")
		}
	case "Identity", "Reshape", "Squeeze", "Unsqueeze":
		if t, ok := r.constants[inputs[0]]; ok {
			r.constants[node.texts("output")[0]] = t // of the same elements
		}
		if node.text("op_type") == "Identity" { // GoMLX's has no gradient
			n := newNodes(g, node)
			first := n.number(0, 1)
			n.become("Squeeze", n.add("Unsqueeze", inputs[0], first), first)
		}
	case "GlobalMaxPool":
		newNodes(g, node).maximum(inputs[0])
	case "Slice":
		return r.slice(g, node, inputs)
	case "Range":
		return r.sequence(g, node, inputs)
	}
	return nil
}

// nodes adds nodes to a graph in place of one.
type nodes struct {
	graph, node message
	count       int
}

func newNodes(g, node message) *nodes { return &nodes{graph: g, node: node} }

func (n *nodes) name() string {
	n.count++
	return fmt.Sprintf("%s | %d", n.node.texts("output")[0], n.count)
}

func (n *nodes) add(operator string, inputs ...string) string {
	name := n.name()
	n.graph.addNode(operator, name, inputs...)
	return name
}

// number adds a constant of whole numbers, a scalar or a list of one.
func (n *nodes) number(x int64, dims ...int64) string {
	t := n.graph.add("initializer")
	name := n.name()
	t.set("name", name)
	t.set("data_type", int32(7))
	t.set("raw_data", binary.LittleEndian.AppendUint64(nil, uint64(x)))
	for range dims {
		t.addNumber("dims", 1)
	}
	return name
}

func (n *nodes) cast(x string, to int64) string {
	name := n.name()
	n.graph.addNode("Cast", name, x).addInt("to", to)
	return name
}

// become changes the node to another operator.
func (n *nodes) become(operator string, inputs ...string) {
	n.node.set("op_type", operator)
	n.node.clear("input")
	n.node.clear("attribute")
	for _, name := range inputs {
		n.node.addText("input", name)
	}
}

// maximum is the maximum over the axes from 2 on.
func (n *nodes) maximum(x string) {
	rank := n.add("Size", n.add("Shape", x))
	n.become("ReduceMax", x, n.add("Range", n.number(2), rank, n.number(1)))
}

// slice checks negative steps, with which onnx-gomlx returns other elements: only an axis in reverse is implemented.
func (r *rewriter) slice(g, node message, inputs []string) error {
	if len(inputs) < 5 || inputs[4] == "" {
		return nil
	}
	steps, err := r.integers(inputs[4])
	if err != nil {
		return fmt.Errorf("its steps: %w", err)
	}
	if !slices.ContainsFunc(steps, func(step int64) bool { return step < 0 }) {
		return nil
	}
	var of [4][]int64
	for i := range of {
		if of[i], err = r.integers(inputs[i+1]); err != nil || len(of[i]) != 1 {
			return fmt.Errorf("it has negative steps, of which only an axis in reverse is implemented: starts -1, ends below -%d, steps -1", math.MaxInt32)
		}
	}
	if of[0][0] != -1 || of[1][0] > -math.MaxInt32 || of[3][0] != -1 {
		return fmt.Errorf("it has the negative steps %v from %v to %v, of which only an axis in reverse is implemented: starts -1, ends below -%d, steps -1", of[3], of[0], of[1], math.MaxInt32)
	}
	n, axis := newNodes(g, node), of[2][0]
	size := n.add("Gather", n.add("Shape", inputs[0]), n.number(axis))
	up := n.sequence(size)
	n.become("Gather", inputs[0], n.add("Sub", n.add("Neg", up), n.number(1)))
	node.addInt("axis", axis)
	return nil
}

// sequence adds the numbers from 0 to below a scalar. The scalar is the size of an array, which onnx-gomlx knows while
// it builds: it cannot count a Range whose limit was computed.
func (n *nodes) sequence(size string) string {
	array := n.add("Expand", n.number(0), n.add("Unsqueeze", size, n.number(0, 1)))
	return n.add("Range", n.number(0), n.add("Size", array), n.number(1))
}

// sequence rewrites a Range as start + i*delta.
func (r *rewriter) sequence(g, node message, inputs []string) error {
	kind := int64(0)
	for _, name := range inputs {
		if t, ok := r.constants[name]; ok {
			kind = t.number("data_type")
		}
	}
	if kind == 0 {
		return fmt.Errorf("neither its start, limit nor delta is constant, expected one")
	}
	const double = 11
	n := newNodes(g, node)
	start, limit, delta := n.cast(inputs[0], double), n.cast(inputs[1], double), n.cast(inputs[2], double)
	count := n.cast(n.add("Ceil", n.add("Div", n.add("Sub", limit, start), delta)), 7)
	n.become("Add", n.add("Mul", n.cast(n.sequence(count), kind), inputs[2]), inputs[0])
	return nil
}

func (r *rewriter) integers(name string) (all []int64, err error) {
	t, ok := r.constants[name]
	if !ok {
		return nil, fmt.Errorf("%q is computed, expected a constant", name)
	}
	data := t.bytes("raw_data")
	switch t.number("data_type") {
	case 6:
		for ; len(data) > 0; data = data[4:] {
			all = append(all, int64(int32(binary.LittleEndian.Uint32(data))))
		}
	case 7:
		for ; len(data) > 0; data = data[8:] {
			all = append(all, int64(binary.LittleEndian.Uint64(data)))
		}
	default:
		return nil, fmt.Errorf("%q is not of whole numbers", name)
	}
	return all, nil
}
