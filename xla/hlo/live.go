package hlo

import (
	"slices"
	"strconv"

	"github.com/gomlx/go-xla/stablehlo"
)

// live are the statements of a function that lead to its outputs; it adds the numbers of their values. A graph has
// others too: GoMLX differentiates an operation by all operands, whatever was asked for.
func (f *Function) live(numbers map[int]bool) []*stablehlo.Statement {
	used := map[string]bool{} // by name: a closure has another value for one from outside
	var keep func(s *stablehlo.Statement)
	keep = func(s *stablehlo.Statement) {
		for _, v := range s.Inputs {
			used[v.String()] = true
		}
		for _, v := range s.Outputs {
			if n, err := strconv.Atoi(v.String()[1:]); err == nil {
				numbers[n] = true
			}
		}
		for _, region := range s.FunctionParameters {
			for _, inner := range region.Statements {
				keep(inner)
			}
		}
	}
	for _, v := range f.outputs {
		used[v.String()] = true
	}
	var kept []*stablehlo.Statement
	for _, s := range slices.Backward(f.text.Statements) {
		if slices.ContainsFunc(s.Outputs, func(v *value) bool { return used[v.String()] }) {
			keep(s)
			kept = append(kept, s)
		}
	}
	slices.Reverse(kept)
	return kept
}
