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

// Sort sorts all inputs along an axis. comparator takes a pair of elements of each input (lhs0, rhs0, lhs1, rhs1, …;
// compute documents another order, GoMLX and its backends use this one) and reports whether lhs comes first. It must
// not capture values.
//
// Floats are in total order: -0 before 0, NaNs of either sign after +Inf.
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
			return nil, fmt.Errorf("the comparator uses a value from outside, %s, which XLA's sort does not see; compute the sort key before the sort", shapeOf(outside[0].value))
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

// With other comparisons NaN would leave its neighbours in any order. x == x, a test for NaN, stays.
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

// x86's 0/0, a negative NaN, would come before all numbers.
func unsignedNaN(v *value) (*value, error) {
	if classOf(v) != float {
		return v, nil
	}
	c := &chain{}
	return c.choose(c.compare(v, v, types.CompareNE), c.one(stablehlo.Abs, v), v), c.err
}
