package onnx

import "maps"

// Operators are the names of the operators that are implemented.
func Operators() map[string]bool {
	all := map[string]bool{}
	for name := range maps.Keys(operators) {
		all[name] = true
	}
	return all
}
