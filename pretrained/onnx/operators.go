package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

type operator struct {
	// least is the number of required inputs; inputs and outputs are the most.
	least, inputs, outputs int
	// attributes are a node's: "name" any, "!name" any, and it must have it, "name:a|b" one of several values,
	// "name=a" one value that onnx-gomlx does not read, and "-name" any, without an effect on predictions. Others are
	// errors.
	attributes string
	// constant are the positions of untrained inputs, without of unimplemented ones, and gaps of those that may be
	// missing before a given one.
	constant, without, gaps []int
	// float are operators of floating-point numbers alone. Wide ones round more than once, or add many numbers:
	// float16 and bfloat16 are computed in float32, as by ONNX Runtime.
	float, wide bool
}

const (
	anyNumber = 1 << 16
	reduction = "axes keepdims noop_with_empty_axes"
	window    = "!kernel_shape strides pads auto_pad=NOTSET ceil_mode=0 dilations=1"
	extreme   = "axis keepdims select_last_index=0"
)

var (
	one    = operator{least: 1, inputs: 1, outputs: 1}
	smooth = operator{least: 1, inputs: 1, outputs: 1, float: true}
	folded = operator{least: 1, inputs: 1, outputs: 1, float: true, wide: true}
	two    = operator{least: 2, inputs: 2, outputs: 1}
	reduce = operator{least: 1, inputs: 2, outputs: 1, attributes: reduction, wide: true}
)

// TestOperators compares all operators with ONNX Runtime.
var operators = map[string]operator{
	"Add": two, "Sub": two, "Mul": two, "Div": two, "And": two, "Or": two, "Xor": two,
	"Pow":   {least: 2, inputs: 2, outputs: 1, constant: []int{1}, wide: true},
	"Mod":   {least: 2, inputs: 2, outputs: 1, attributes: "fmod:0|1"},
	"Equal": two, "Less": two, "LessOrEqual": two, "Greater": two, "GreaterOrEqual": two,
	"Sqrt": smooth, "Exp": smooth, "Log": smooth, "Erf": smooth, "Relu": one, "Abs": one, "Neg": one, "Sign": one,
	"Ceil": smooth, "Floor": smooth, "Identity": one, "Not": one, "Tanh": smooth, "Sin": smooth, "Cos": smooth,
	"Sigmoid": smooth, "HardSwish": folded, "IsNaN": smooth, "Reciprocal": smooth,
	"Gelu":   {least: 1, inputs: 1, outputs: 1, attributes: "approximate=none", float: true, wide: true},
	"MatMul": two,
	"Einsum": {least: 2, inputs: 2, outputs: 1, attributes: "!equation"},
	"Clip":   {least: 1, inputs: 3, outputs: 1, constant: []int{1, 2}, gaps: []int{1}},
	"Where":  {least: 3, inputs: 3, outputs: 1},
	"Min":    {least: 1, inputs: anyNumber, outputs: 1}, "Max": {least: 1, inputs: anyNumber, outputs: 1},

	"Constant":        {outputs: 1, attributes: "!value"},
	"ConstantOfShape": {least: 1, inputs: 1, outputs: 1, attributes: "value"},
	"Gather":          {least: 2, inputs: 2, outputs: 1, attributes: "axis"},
	"GatherElements":  {least: 2, inputs: 2, outputs: 1, attributes: "axis"},
	"GatherND":        {least: 2, inputs: 2, outputs: 1, attributes: "batch_dims=0"},
	"ScatterND":       {least: 3, inputs: 3, outputs: 1, attributes: "reduction=none"},
	"Shape":           {least: 1, inputs: 1, outputs: 1, attributes: "start"},
	"Size":            one,
	"Concat":          {least: 1, inputs: anyNumber, outputs: 1, attributes: "!axis"},
	"Split":           {least: 1, inputs: 2, outputs: anyNumber, attributes: "axis num_outputs"},
	"Slice":           {least: 3, inputs: 5, outputs: 1, gaps: []int{3}},
	"Pad":             {least: 2, inputs: 3, outputs: 1, attributes: "mode:constant|reflect", constant: []int{2}},
	"Transpose":       {least: 1, inputs: 1, outputs: 1, attributes: "perm"},
	"Reshape":         {least: 2, inputs: 2, outputs: 1, attributes: "-allowzero"}, // for arrays without elements alone
	"Flatten":         {least: 1, inputs: 1, outputs: 1, attributes: "axis"},
	"Squeeze":         {least: 1, inputs: 2, outputs: 1}, "Unsqueeze": two, "Expand": two, "Tile": two,
	"Range":  {least: 3, inputs: 3, outputs: 1, constant: []int{0, 1, 2}},
	"CumSum": {least: 2, inputs: 2, outputs: 1, attributes: "exclusive reverse", wide: true},
	"Trilu":  {least: 1, inputs: 2, outputs: 1, attributes: "upper"},
	"Cast":   {least: 1, inputs: 1, outputs: 1, attributes: "!to -saturate"},

	"Softmax":    {least: 1, inputs: 1, outputs: 1, attributes: "axis", float: true, wide: true},
	"Gemm":       {least: 2, inputs: 3, outputs: 1, attributes: "alpha beta transA transB", float: true, wide: true},
	"ReduceMean": reduce, "ReduceMax": reduce, "ReduceMin": reduce, "ReduceSum": reduce, "ReduceProd": reduce,
	"ReduceL2": {least: 1, inputs: 2, outputs: 1, attributes: "axes keepdims noop_with_empty_axes=0", float: true, wide: true},
	"ArgMax":   {least: 1, inputs: 1, outputs: 1, attributes: extreme},
	"ArgMin":   {least: 1, inputs: 1, outputs: 1, attributes: extreme},

	"LSTM": {least: 3, inputs: 7, outputs: 3, attributes: "direction:forward|reverse|bidirectional !hidden_size layout=0 input_forget=0",
		without: []int{4}, gaps: []int{3, 4, 5}, float: true, wide: true},
	"Conv":               {least: 2, inputs: 3, outputs: 1, attributes: "kernel_shape strides pads dilations group auto_pad=NOTSET", float: true},
	"MaxPool":            {least: 1, inputs: 1, outputs: 1, attributes: window + " storage_order=0"},
	"AveragePool":        {least: 1, inputs: 1, outputs: 1, attributes: window + " count_include_pad=0", float: true, wide: true},
	"GlobalAveragePool":  folded,
	"GlobalMaxPool":      smooth,
	"BatchNormalization": {least: 5, inputs: 5, outputs: 1, attributes: "epsilon -momentum training_mode=0", constant: []int{3, 4}, float: true, wide: true},
	"LayerNormalization": {least: 2, inputs: 3, outputs: 1, attributes: "axis epsilon stash_type=1", float: true, wide: true},
	"If":                 {least: 1, inputs: 1, outputs: anyNumber, attributes: "!then_branch !else_branch"},
}

// operator also removes the attributes that onnx-gomlx does not read.
func (c *checker) operator(node message) error {
	of, known := operators[node.text("op_type")]
	if !known || !ownDomain(node.text("domain")) || node.has("overload") {
		return fmt.Errorf("it is not implemented, expected one of %q", slices.Sorted(maps.Keys(operators)))
	}
	inputs := node.texts("input")
	for len(inputs) > 0 && inputs[len(inputs)-1] == "" { // as left out
		inputs = inputs[:len(inputs)-1]
	}
	node.setInputs(inputs)
	if n := len(inputs); n < of.least || n > of.inputs {
		return fmt.Errorf("it has %d inputs, of which at least %d are needed, and at most %d are implemented", n, of.least, of.inputs)
	}
	if n := len(slices.DeleteFunc(node.texts("output"), func(name string) bool { return name == "" })); n > of.outputs {
		return fmt.Errorf("it has %d outputs, of which at most %d are implemented", n, of.outputs)
	}
	for i, name := range inputs {
		if name != "" && slices.Contains(of.without, i) {
			return fmt.Errorf("its input %d, %q, is not implemented", i, name)
		}
		if name == "" && !slices.Contains(of.gaps, i) {
			return fmt.Errorf("its input %d is not given, which is not implemented", i)
		}
	}
	for row := range strings.FieldsSeq(of.attributes) {
		name, needed := strings.CutPrefix(row, "!")
		if _, found := node.attribute(name); needed && !found {
			return fmt.Errorf("it lacks the attribute %s", name)
		}
	}
	var failed error
	seen := map[string]bool{}
	node.keep("attribute", func(a message) bool {
		if name := a.text("name"); seen[name] && failed == nil {
			failed = fmt.Errorf("it has the attribute %s twice", name)
		}
		seen[a.text("name")] = true
		keep, err := of.attribute(a)
		if err != nil && failed == nil {
			failed = err
		}
		return keep
	})
	return failed
}

var attributeTypes = map[string]int64{
	"alpha": 1, "beta": 1, "epsilon": 1, "momentum": 1,
	"mode": 3, "direction": 3, "equation": 3, "approximate": 3, "auto_pad": 3, "reduction": 3,
	"value": 4, "then_branch": 5, "else_branch": 5,
	"axes": 7, "perm": 7, "kernel_shape": 7, "strides": 7, "pads": 7, "dilations": 7,
}

const wholeNumber = 2

func (o operator) attribute(a message) (keep bool, err error) {
	name := a.text("name")
	want, other := attributeTypes[name]
	if !other {
		want = wholeNumber
	}
	for _, row := range strings.Fields(o.attributes) {
		end := strings.IndexAny(row, ":=")
		switch {
		case strings.Trim(row, "!-") != name && (end < 0 || row[:end] != name):
			continue
		case a.number("type") != want:
			return false, fmt.Errorf("the attribute %s is of ONNX's type %d, expected %d", name, a.number("type"), want)
		case end < 0:
			return row[0] != '-', nil
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
