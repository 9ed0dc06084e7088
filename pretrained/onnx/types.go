package onnx

import "fmt"

const (
	single  = 1
	int64s  = 7
	bools   = 9
	half    = 10
	doubles = 11
	brain   = 16
)

func narrow(kind int64) bool { return kind == half || kind == brain }

func floating(kind int64) bool { return kinds[kind].dtype.IsFloat() }

func (r *rewriter) typeOf(node message, output int) (int64, error) {
	inputs := node.texts("input")
	first := int64(0)
	if len(inputs) > 0 {
		first = r.types[inputs[0]]
	}
	operator := node.text("op_type")
	if operators[operator].float && !floating(first) {
		return 0, fmt.Errorf("its input %q is of %s, expected floating-point numbers", inputs[0], kinds[first].dtype)
	}
	switch operator {
	case "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN":
		return bools, nil
	case "Shape", "Size", "ArgMax", "ArgMin":
		return int64s, nil
	case "Where":
		return r.types[inputs[1]], nil
	case "Cast":
		to := node.numbers("to")
		if len(to) != 1 || kinds[to[0]].field == "" {
			return 0, fmt.Errorf("it casts to the data type %v of ONNX, expected one of %s", to, knownKinds())
		}
		return to[0], nil
	case "Constant", "ConstantOfShape":
		a, found := node.attribute("value")
		if !found {
			return single, nil
		}
		return a.child("t").number("data_type"), nil
	case "If":
		a, _ := node.attribute("then_branch")
		all := a.child("g").named("output")
		if output >= len(all) {
			return 0, fmt.Errorf("its then_branch has %d outputs, expected more than %d", len(all), output)
		}
		return r.types[all[output]], nil
	}
	return first, nil
}
