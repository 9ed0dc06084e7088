package hlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// Sort sorts along an axis, all inputs in the order that the comparator gives. It takes two elements of each input,
// those of the first input before those of the second, and tells whether the first one of each pair comes first.
// (compute's words on this method have another order of parameters; GoMLX's graph functions and its backends have this
// one.)
//
// Floats are in total order: a NaN, of either sign, behind +Inf, and -0 before 0.
func (f *Function) Sort(comparator compute.Function, axis int, isStable bool, inputs ...compute.Value) ([]compute.Value, error) {
	return f.emitList(compute.OpTypeSort, inputs, func(v []*value) ([]*value, error) {
		if len(v) == 0 {
			return nil, errors.New("no inputs, expected one at least")
		}
		if err := checkAxes("axis", []int{axis}, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		var elements []shapes.Shape
		for i, x := range v {
			if !slices.Equal(dims(x), dims(v[0])) {
				return nil, fmt.Errorf("input %d has dimensions %v, input 0 %v; expected the same", i, dims(x), dims(v[0]))
			}
			elements = append(elements, scalarShape(x.Shape().DType), scalarShape(x.Shape().DType))
		}
		before, err := f.region("the comparator", comparator, elements, []shapes.Shape{shapes.Make(dtypes.Bool)})
		if err != nil {
			return nil, err
		}
		if outside := comparator.(*Function).captured; len(outside) > 0 {
			return nil, fmt.Errorf("the comparator uses a value from outside, %s, which XLA's sort does not see; sort by what is computed of it before", shapeOf(outside[0].value))
		}
		before.Statements = inTotalOrder(before.Statements)
		for i := range v {
			if v[i], err = unsignedNaN(v[i]); err != nil {
				return nil, err
			}
		}
		return stablehlo.Sort(before, axis, isStable, v...)
	})
}

// inTotalOrder are the statements of a comparator with each comparison of floats as one of all floats. One that is
// false with a NaN either way leaves the numbers beside it in any order. A value that is compared with itself is asked
// whether it is a NaN, and stays so.
func inTotalOrder(statements []*stablehlo.Statement) []*stablehlo.Statement {
	statements = slices.Clone(statements)
	for i, s := range statements {
		changed := *s
		if s.Attributes["compare_type"] == types.CompareFloat && s.Inputs[0] != s.Inputs[1] {
			changed.Attributes = maps.Clone(s.Attributes)
			changed.Attributes["compare_type"] = types.CompareTotalOrder
		}
		changed.FunctionParameters = slices.Clone(s.FunctionParameters)
		for k, region := range s.FunctionParameters {
			inside := *region
			inside.Statements = inTotalOrder(region.Statements)
			changed.FunctionParameters[k] = &inside
		}
		statements[i] = &changed
	}
	return statements
}

// unsignedNaN takes the sign from each NaN: 0/0 of x86 has one, and would come before all numbers.
func unsignedNaN(v *value) (*value, error) {
	if classOf(v) != float {
		return v, nil
	}
	c := &chain{}
	return c.choose(c.compare(v, v, types.CompareNE), c.one(stablehlo.Abs, v), v), c.err
}
