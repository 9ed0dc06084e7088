package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operator describes the part of an operator that is implemented.
type operator struct {
	inputs, outputs int // at most
	// attributes are those that a node may have: "name" any, "name:a|b" one of several values, "name=a" one value that
	// onnx-gomlx does not read, and "-name" any, without an effect on predictions. Others are errors.
	attributes string
	// constant are the positions of inputs that are not trained, without of those that are not implemented.
	constant, without []int
}

const (
	anyNumber = 1 << 16
	reduction = "axes keepdims noop_with_empty_axes"
	window    = "kernel_shape strides pads auto_pad=NOTSET ceil_mode=0 dilations=1"
)

var (
	one    = operator{inputs: 1, outputs: 1}
	two    = operator{inputs: 2, outputs: 1}
	reduce = operator{inputs: 2, outputs: 1, attributes: reduction}
)

// operators has the operators of which TestOperators compares all with ONNX Runtime.
var operators = map[string]operator{
	"Add": two, "Sub": two, "Mul": two, "Div": two, "Pow": {inputs: 2, outputs: 1, constant: []int{1}}, "And": two, "Or": two, "Xor": two,
	"Mod":   {inputs: 2, outputs: 1, attributes: "fmod"},
	"Equal": two, "Less": two, "LessOrEqual": two, "Greater": two, "GreaterOrEqual": two,
	"Sqrt": one, "Exp": one, "Log": one, "Erf": one, "Relu": one, "Abs": one, "Neg": one, "Sign": one, "Ceil": one, "Floor": one,
	"Identity": one, "Not": one, "Tanh": one, "Sin": one, "Cos": one, "Sigmoid": one, "HardSwish": one, "IsNaN": one, "Reciprocal": one,
	"Gelu":   {inputs: 1, outputs: 1, attributes: "approximate=none"},
	"MatMul": two,
	"Einsum": {inputs: 2, outputs: 1, attributes: "equation"},
	"Clip":   {inputs: 3, outputs: 1, constant: []int{1, 2}},
	"Where":  {inputs: 3, outputs: 1},
	"Min":    {inputs: anyNumber, outputs: 1}, "Max": {inputs: anyNumber, outputs: 1},

	"Constant":        {outputs: 1, attributes: "value"},
	"ConstantOfShape": {inputs: 1, outputs: 1, attributes: "value"},
	"Gather":          {inputs: 2, outputs: 1, attributes: "axis"},
	"GatherElements":  {inputs: 2, outputs: 1, attributes: "axis"},
	"GatherND":        {inputs: 2, outputs: 1, attributes: "batch_dims=0"},
	"ScatterND":       {inputs: 3, outputs: 1, attributes: "reduction=none"},
	"Shape":           {inputs: 1, outputs: 1, attributes: "start"},
	"Size":            one,
	"Concat":          {inputs: anyNumber, outputs: 1, attributes: "axis"},
	"Split":           {inputs: 2, outputs: anyNumber, attributes: "axis -num_outputs"},
	"Slice":           {inputs: 5, outputs: 1},
	"Pad":             {inputs: 3, outputs: 1, attributes: "mode:constant|reflect", constant: []int{2}},
	"Transpose":       {inputs: 1, outputs: 1, attributes: "perm"},
	"Reshape":         {inputs: 2, outputs: 1, attributes: "-allowzero"}, // it matters only for arrays without elements
	"Flatten":         {inputs: 1, outputs: 1, attributes: "axis"},
	"Squeeze":         two, "Unsqueeze": two, "Expand": two, "Tile": two,
	"Range":  {inputs: 3, outputs: 1, constant: []int{0, 1, 2}},
	"CumSum": {inputs: 2, outputs: 1, attributes: "exclusive reverse"},
	"Trilu":  {inputs: 2, outputs: 1, attributes: "upper"},
	"Cast":   {inputs: 1, outputs: 1, attributes: "to -saturate"},

	"Softmax":    {inputs: 1, outputs: 1, attributes: "axis"},
	"Gemm":       {inputs: 3, outputs: 1, attributes: "alpha beta transA transB"},
	"ReduceMean": reduce, "ReduceMax": reduce, "ReduceMin": reduce, "ReduceSum": reduce, "ReduceProd": reduce, "ReduceL2": reduce,
	"ArgMax": {inputs: 1, outputs: 1, attributes: "axis keepdims select_last_index=0"},
	"ArgMin": {inputs: 1, outputs: 1, attributes: "axis keepdims select_last_index=0"},

	"LSTM":               {inputs: 7, outputs: 3, attributes: "direction:forward|reverse|bidirectional hidden_size layout=0 input_forget=0", without: []int{4}},
	"Conv":               {inputs: 3, outputs: 1, attributes: "kernel_shape strides pads dilations group auto_pad=NOTSET"},
	"MaxPool":            {inputs: 1, outputs: 1, attributes: window + " storage_order=0"},
	"AveragePool":        {inputs: 1, outputs: 1, attributes: window + " count_include_pad=0"},
	"GlobalAveragePool":  one,
	"GlobalMaxPool":      one,
	"BatchNormalization": {inputs: 5, outputs: 1, attributes: "epsilon -momentum training_mode=0", constant: []int{3, 4}},
	"LayerNormalization": {inputs: 3, outputs: 1, attributes: "axis epsilon stash_type=1"},
	"If":                 {inputs: 1, outputs: anyNumber, attributes: "then_branch else_branch"},
}

// operator checks a node by the table, and removes the attributes that onnx-gomlx does not read.
func (c *checker) operator(node message) error {
	of, known := operators[node.text("op_type")]
	if !known || !ownDomain(node.text("domain")) || node.has("overload") {
		return fmt.Errorf("it is not implemented, expected one of %q", slices.Sorted(maps.Keys(operators)))
	}
	if n := len(node.texts("input")); n > of.inputs {
		return fmt.Errorf("it has %d inputs, of which at most %d are implemented", n, of.inputs)
	}
	if n := len(slices.DeleteFunc(node.texts("output"), func(name string) bool { return name == "" })); n > of.outputs {
		return fmt.Errorf("it has %d outputs, of which at most %d are implemented", n, of.outputs)
	}
	for i, name := range node.texts("input") {
		if name != "" && slices.Contains(of.without, i) {
			return fmt.Errorf("its input %d, %q, is not implemented", i, name)
		}
	}
	var failed error
	node.keep("attribute", func(a message) bool {
		keep, err := of.attribute(a)
		if err != nil && failed == nil {
			failed = err
		}
		return keep
	})
	return failed
}

func (o operator) attribute(a message) (keep bool, err error) {
	name := a.text("name")
	for _, row := range strings.Fields(o.attributes) {
		end := strings.IndexAny(row, ":=")
		switch {
		case row == name:
			return true, nil
		case row == "-"+name:
			return false, nil
		case end < 0 || row[:end] != name:
			continue
		}
		for of := range strings.SplitSeq(row[end+1:], "|") {
			if is(a, of) {
				return row[end] == ':', nil
			}
		}
		return false, fmt.Errorf("the attribute %s is %s, expected %s", name, valueOf(a), row[end+1:])
	}
	return false, fmt.Errorf("the attribute %s is not implemented, expected only %q", name, o.attributes)
}

// is reports whether an attribute has a value, a list at all places.
func is(a message, value string) bool {
	of := valueOf(a)
	return !slices.ContainsFunc(of, func(v string) bool { return v != value })
}

func valueOf(a message) (all []string) {
	switch a.number("type") {
	case 2:
		return []string{fmt.Sprint(a.number("i"))}
	case 3:
		return []string{string(a.bytes("s"))}
	case 7:
		for _, v := range a.values("ints") {
			all = append(all, fmt.Sprint(v.Int()))
		}
		return all
	}
	return []string{"of another type"}
}
