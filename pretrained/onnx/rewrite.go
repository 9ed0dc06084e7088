package onnx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/shield"
)

// rewriter replaces by other operators what onnx-gomlx lacks or computes otherwise than ONNX.
type rewriter struct {
	ctx       context.Context
	constants map[string]message // of initializers and nodes Constant, by name
	static    map[string]bool    // names of untrained inputs
	types     map[string]int64   // ONNX's data types of values
}

func (r *rewriter) graph(g message) error {
	for _, v := range g.list("input") {
		r.types[v.text("name")] = v.child("type").child("tensor_type").number("elem_type")
	}
	for _, t := range g.list("initializer") {
		r.constants[t.text("name")] = t
		r.types[t.text("name")] = t.number("data_type")
	}
	for _, node := range g.list("node") {
		if err := shield.Context(r.ctx); err != nil {
			return err
		}
		node.set("doc_string", label(node)) // for errors when it is built
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
	operator := node.text("op_type")
	for _, i := range operators[operator].constant {
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
	for i, name := range node.texts("output") {
		kind, err := r.typeOf(node, i)
		if err != nil {
			return err
		}
		r.types[name] = kind
	}
	n := &nodes{rewriter: r, graph: g, node: node, prefix: node.texts("output")[0]}
	if err := n.rewrite(operator, inputs); err != nil {
		return err
	}
	if operators[operator].wide && node.text("op_type") == operator {
		n.widen()
	}
	return nil
}

func (n *nodes) rewrite(operator string, inputs []string) error {
	switch operator {
	case "Constant":
		a, _ := n.node.attribute("value")
		n.constants[n.prefix] = a.child("t")
	case "ConstantOfShape":
		return n.filled()
	case "Identity", "Reshape", "Squeeze", "Unsqueeze":
		if t, ok := n.constants[inputs[0]]; ok {
			n.constants[n.prefix] = t // of the same elements
		}
		if operator == "Identity" { // GoMLX's has no gradient
			first := n.numbers(0)
			n.become("Squeeze", n.add("Unsqueeze", inputs[0], first), first)
		}
	case "GlobalMaxPool":
		n.maximum(inputs[0])
	case "Slice":
		return n.slice(inputs)
	case "Range":
		n.between(inputs)
	case "MaxPool", "AveragePool":
		n.steps()
	case "GatherND", "ScatterND":
		n.fromEnd(inputs)
	case "Mod":
		return n.modulo(inputs)
	case "Pow":
		return n.power(inputs)
	case "ReduceMean":
		n.mean(inputs)
	case "Pad":
		n.reflect(inputs)
	case "LSTM":
		n.withBias(inputs)
	case "Conv":
		return n.convolve()
	case "Flatten":
		if axis := n.node.numbers("axis", 1); axis[0] >= 0 { // which may be the rank
			n.node.setInputs([]string{n.add("Unsqueeze", inputs[0], n.numbers(-1))})
		}
	case "Shape":
		if start := n.node.numbers("start", 0)[0]; start != 0 { // which may be outside
			n.become("Slice", n.add("Shape", inputs[0]), n.numbers(start), n.numbers(math.MaxInt32), n.numbers(0))
		}
	case "CumSum":
		inputs[1] = n.add("Reshape", inputs[1], n.numbers()) // a list of one axis, too
		if all, err := n.integers(n.node.texts("input")[1]); err == nil && len(all) == 1 {
			inputs[1] = n.number(all[0])
		}
		n.node.setInputs(inputs)
	case "Einsum":
		return n.einsum()
	case "Split":
		return n.split(inputs)
	}
	return nil
}

type nodes struct {
	*rewriter
	graph, node message
	prefix      string
	count       int
}

// joint is in the names of added values, and in no other.
const joint = " | "

func (n *nodes) name() string {
	n.count++
	return fmt.Sprintf("%s%s%d", n.prefix, joint, n.count)
}

func (n *nodes) add(operator string, inputs ...string) string {
	name := n.name()
	n.make(operator, name, inputs...)
	return name
}

func (n *nodes) make(operator, output string, inputs ...string) message {
	made := n.graph.addNode(operator, output, inputs...)
	made.set("doc_string", n.node.text("doc_string"))
	return made
}

func (n *nodes) number(x int64) string { return n.constant(nil, x) }

func (n *nodes) numbers(all ...int64) string { return n.constant([]int64{int64(len(all))}, all...) }

func (n *nodes) constant(dims []int64, all ...int64) string {
	t := n.graph.add("initializer")
	name := n.name()
	t.set("name", name)
	t.set("data_type", int32(int64s))
	data := []byte{}
	for _, x := range all {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	t.set("raw_data", data)
	for _, dim := range dims {
		t.addNumber("dims", dim)
	}
	n.constants[name] = t
	return name
}

func (n *nodes) cast(x string, to int64) string {
	name := n.name()
	n.make("Cast", name, x).addInt("to", to)
	n.types[name] = to
	return name
}

func (n *nodes) become(operator string, inputs ...string) {
	n.node.set("op_type", operator)
	n.node.clear("attribute")
	n.node.setInputs(inputs)
}

func (n *nodes) rename(output int) (was, is string) {
	of := n.node.texts("output")
	was, is = of[output], n.name()
	of[output] = is
	n.node.clear("output")
	for _, name := range of {
		n.node.addText("output", name)
	}
	return was, is
}

func (n *nodes) widen() {
	inputs, kind := n.node.texts("input"), int64(0)
	for i, name := range inputs {
		if narrow(n.types[name]) {
			kind = n.types[name]
			inputs[i] = n.cast(name, single)
		}
	}
	if kind == 0 {
		return
	}
	n.node.setInputs(inputs)
	for i, name := range n.node.texts("output") {
		if name != "" && narrow(n.types[name]) {
			was, is := n.rename(i)
			n.make("Cast", was, is).addInt("to", kind)
		}
	}
}

// filled makes the value of a ConstantOfShape a scalar, as shapes without axes need.
func (n *nodes) filled() error {
	a, found := n.node.attribute("value")
	if !found {
		return nil
	}
	t := a.child("t")
	if t.number("data_type") == 0 || len(t.bytes("raw_data")) != kinds[t.number("data_type")].dtype.Size() {
		return fmt.Errorf("its value has the shape %v, expected one element", t.dims())
	}
	t.clear("dims")
	return nil
}

func (n *nodes) maximum(x string) {
	rank := n.add("Size", n.add("Shape", x))
	n.become("ReduceMax", x, n.add("Range", n.number(2), rank, n.number(1)))
}

// steps writes out the steps of a window, which are 1: GoMLX takes its size.
func (n *nodes) steps() {
	if _, found := n.node.attribute("strides"); !found {
		n.node.addInts("strides", slices.Repeat([]int64{1}, len(n.node.numbers("kernel_shape"))))
	}
}

// fromEnd counts negative indices from the end, as onnx-gomlx for Gather and GatherElements alone.
func (n *nodes) fromEnd(inputs []string) {
	if all, err := n.integers(inputs[1]); err == nil && !slices.ContainsFunc(all, negative) {
		return
	}
	depth := n.size(inputs[1], -1)
	sizes := n.add("Slice", n.add("Shape", inputs[0]), n.numbers(0), depth)
	zero := n.number(0)
	inputs[1] = n.add("Add", inputs[1], n.add("Where", n.add("Less", inputs[1], zero), sizes, zero))
	n.node.setInputs(inputs)
}

// size is an axis's size, a list of one number, without a Gather, which GoMLX does not build in both branches of an If.
func (n *nodes) size(x string, axis int64) string {
	end := axis + 1
	if axis == -1 {
		end = math.MaxInt32
	}
	return n.add("Slice", n.add("Shape", x), n.numbers(axis), n.numbers(end), n.numbers(0))
}

func negative(x int64) bool { return x < 0 }

// modulo has the divisor's sign without products, which overflow.
func (n *nodes) modulo(inputs []string) error {
	if n.node.numbers("fmod", 0)[0] == 1 {
		return nil
	}
	kind := n.types[inputs[0]]
	if floating(kind) {
		return errors.New("its attribute fmod is 0, expected 1 for floating-point numbers")
	}
	rest := n.name()
	n.make("Mod", rest, inputs...).addInt("fmod", 1)
	zero := n.cast(n.number(0), kind)
	other := n.add("Xor", n.add("Less", rest, zero), n.add("Less", inputs[1], zero))
	off := n.add("And", other, n.add("Not", n.add("Equal", rest, zero)))
	n.become("Where", off, n.add("Add", rest, inputs[1]), rest)
	return nil
}

// power casts an exponent to the base's data type.
func (n *nodes) power(inputs []string) error {
	base, exponent := n.types[inputs[0]], n.types[inputs[1]]
	if base == exponent {
		return nil
	}
	if !floating(base) && floating(exponent) {
		return fmt.Errorf("it is a power of %s by %s, expected whole numbers, or a floating-point base", kinds[base].dtype, kinds[exponent].dtype)
	}
	inputs[1] = n.cast(inputs[1], base)
	n.node.setInputs(inputs)
	return nil
}

// mean divides the sum of whole numbers: GoMLX multiplies by a fraction, which as a whole number is 0.
func (n *nodes) mean(inputs []string) {
	kind := n.types[inputs[0]]
	if floating(kind) {
		return
	}
	n.node.set("op_type", "ReduceSum")
	was, sum := n.rename(0)
	n.make("Div", was, sum, n.cast(n.add("Div", n.add("Size", inputs[0]), n.add("Size", sum)), kind))
}

// reflect removes what negative pads remove, before others are reflected.
func (n *nodes) reflect(inputs []string) {
	if a, found := n.node.attribute("mode"); !found || string(a.bytes("s")) != "reflect" {
		return
	}
	if pads, err := n.integers(inputs[1]); err == nil && !slices.ContainsFunc(pads, negative) {
		return
	}
	zero := n.number(0)
	n.node.setInputs([]string{n.add("Pad", inputs[0], n.add("Min", inputs[1], zero)), n.add("Max", inputs[1], zero)})
}

func (n *nodes) withBias(inputs []string) {
	if len(inputs) > 3 && inputs[3] != "" {
		return
	}
	if len(inputs) == 3 {
		inputs = append(inputs, "")
	}
	directions := int64(1)
	if a, found := n.node.attribute("direction"); found && string(a.bytes("s")) == "bidirectional" {
		directions = 2
	}
	zero := n.cast(n.number(0), n.types[inputs[0]])
	inputs[3] = n.add("Expand", zero, n.numbers(directions, 8*n.node.numbers("hidden_size")[0]))
	n.types[inputs[3]] = n.types[inputs[0]]
	n.node.setInputs(inputs)
}

// convolve takes each stride-th result of a dilated convolution: GoMLX has either.
func (n *nodes) convolve() error {
	strides, dilations := n.node.numbers("strides"), n.node.numbers("dilations")
	more := func(x int64) bool { return x != 1 }
	if !slices.ContainsFunc(strides, more) || !slices.ContainsFunc(dilations, more) {
		return nil
	}
	if slices.ContainsFunc(strides, func(x int64) bool { return x < 1 }) || len(strides) != len(dilations) {
		return fmt.Errorf("it has the strides %v and dilations %v, expected as many positive numbers", strides, dilations)
	}
	n.node.drop("strides")
	was, is := n.rename(0)
	rank := len(strides)
	axes := make([]int64, rank)
	for i := range axes {
		axes[i] = int64(2 + i)
	}
	starts, ends := make([]int64, rank), slices.Repeat([]int64{math.MaxInt32}, rank)
	n.make("Slice", was, is, n.numbers(starts...), n.numbers(ends...), n.numbers(axes...), n.numbers(strides...))
	return nil
}

func (n *nodes) einsum() error {
	a, _ := n.node.attribute("equation")
	equation := string(a.bytes("s"))
	operands, result, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	all := strings.ReplaceAll(operands, ",", "")
	fail := func(why string) error {
		return fmt.Errorf("the attribute equation is %q, %s", equation, why)
	}
	for _, letter := range all + result {
		if letter < 'a' || letter > 'z' {
			return fail("expected lower-case letters, two operands and a result: others are not implemented")
		}
	}
	terms := strings.Split(operands, ",")
	if len(terms) != 2 {
		return fail("expected two operands")
	}
	for _, term := range append(terms, result) {
		for i, letter := range term {
			if strings.ContainsRune(term[:i], letter) {
				return fail("in which an operand or the result has a letter twice, which is not implemented")
			}
			if !strings.ContainsRune(all, letter) {
				return fail("whose result has a letter that no operand has")
			}
		}
	}
	for letter := 'a'; letter <= 'z' && !explicit; letter++ {
		if strings.Count(all, string(letter)) == 1 {
			result += string(letter)
		}
	}
	a.set("s", []byte(operands+"->"+result))
	return nil
}

// split checks that the sizes add up to the axis when the network is built: two lists as rows of one array must be of
// one length.
func (n *nodes) split(inputs []string) error {
	outputs := len(n.node.texts("output"))
	if count := n.node.numbers("num_outputs", int64(outputs))[0]; count != int64(outputs) {
		return fmt.Errorf("the attribute num_outputs is %d, expected %d as outputs", count, outputs)
	}
	if len(inputs) < 2 {
		return nil
	}
	sizes, err := n.integers(inputs[1])
	if err != nil {
		return fmt.Errorf("its sizes: %w", err)
	}
	if len(sizes) != outputs {
		return fmt.Errorf("it has %d sizes, expected %d as outputs", len(sizes), outputs)
	}
	sum := int64(0)
	for _, size := range sizes {
		if size < 0 || size > math.MaxInt32 {
			return fmt.Errorf("it has the sizes %v, expected no negative ones", sizes)
		}
		sum += size
	}
	of := n.node.text("doc_string")
	n.node.set("doc_string", fmt.Sprintf("%s: its sizes %v add up to %d, expected the size of axis %d", of, sizes, sum, n.node.numbers("axis", 0)[0]))
	one, zero := n.numbers(1), n.number(0)
	row := func(size string) string { return n.add("Expand", zero, n.joined(one, size)) }
	size := n.size(inputs[0], n.node.numbers("axis", 0)[0])
	pair := n.name()
	n.make("Concat", pair, row(size), row(n.numbers(sum))).addInt("axis", 0)
	rest := n.add("ReduceSum", pair)
	inputs[1] = n.add("Add", inputs[1], n.add("Reshape", rest, n.numbers()))
	n.node.set("doc_string", of)
	n.node.setInputs(inputs)
	return nil
}

func (n *nodes) joined(inputs ...string) string {
	name := n.name()
	n.make("Concat", name, inputs...).addInt("axis", 0)
	return name
}

// slice refuses negative steps, with which onnx-gomlx returns other elements, except a reversed axis.
func (n *nodes) slice(inputs []string) error {
	if len(inputs) < 5 {
		return nil
	}
	steps, err := n.integers(inputs[4])
	if err != nil {
		return fmt.Errorf("its steps: %w", err)
	}
	if inputs[3] == "" {
		axes := make([]int64, len(steps))
		for i := range axes {
			axes[i] = int64(i)
		}
		inputs[3] = n.numbers(axes...)
		n.node.setInputs(inputs)
	}
	if !slices.ContainsFunc(steps, func(step int64) bool { return step < 0 }) {
		return nil
	}
	var of [4][]int64
	for i := range of {
		if of[i], err = n.integers(inputs[i+1]); err != nil || len(of[i]) != 1 {
			return fmt.Errorf("it has negative steps, of which only an axis in reverse is implemented: starts -1, ends below -%d, steps -1", math.MaxInt32)
		}
	}
	if of[0][0] != -1 || of[1][0] > -math.MaxInt32 || of[3][0] != -1 {
		return fmt.Errorf("it has the negative steps %v from %v to %v, of which only an axis in reverse is implemented: starts -1, ends below -%d, steps -1", of[3], of[0], of[1], math.MaxInt32)
	}
	axis := of[2][0]
	size := n.add("Gather", n.add("Shape", inputs[0]), n.number(axis))
	up := n.sequence(size)
	n.become("Gather", inputs[0], n.add("Sub", n.add("Neg", up), n.number(1)))
	n.node.addInt("axis", axis)
	return nil
}

// sequence adds the numbers from 0 to below a scalar. The scalar is an array's size, which onnx-gomlx knows while it
// builds: it cannot count a Range with a computed limit.
func (n *nodes) sequence(size string) string {
	array := n.add("Expand", n.number(0), n.add("Unsqueeze", size, n.numbers(0)))
	return n.add("Range", n.number(0), n.add("Size", array), n.number(1))
}

// between rewrites a Range as start + i*delta.
func (n *nodes) between(inputs []string) {
	start, limit, delta := n.cast(inputs[0], doubles), n.cast(inputs[1], doubles), n.cast(inputs[2], doubles)
	count := n.add("Ceil", n.add("Div", n.add("Sub", limit, start), delta))
	count = n.cast(n.add("Max", count, n.cast(n.number(0), doubles)), int64s)
	n.become("Add", n.add("Mul", n.cast(n.sequence(count), n.types[inputs[0]]), inputs[2]), inputs[0])
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
	case int64s:
		for ; len(data) > 0; data = data[8:] {
			all = append(all, int64(binary.LittleEndian.Uint64(data)))
		}
	default:
		return nil, fmt.Errorf("%q is not of whole numbers", name)
	}
	return all, nil
}
