package strategies

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Input is a field in the graph.
type Input struct {
	Name string
	// Shape is that of the whole batch, also of a part.
	Shape shapes.Shape
	// Of is the number of parts ([data.Part]), 0 for whole batches.
	Of int
}

func (in Input) String() string {
	if in.Of > 1 {
		return fmt.Sprintf("{%s %s in %d parts}", in.Name, in.Shape, in.Of)
	}
	return fmt.Sprintf("{%s %s}", in.Name, in.Shape)
}

// Inputs returns a batch's inputs, or an error if no step can take it.
func Inputs(b data.Batch) ([]Input, error) {
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("strategies: %w", graphs.Inner(err))
	}
	inputs := make([]Input, len(b.Fields))
	for i, f := range b.Fields {
		if f.Array.Size() == 0 { // layers divide by the width
			return nil, fmt.Errorf("strategies: field %q of the batch is %s %v, which has no elements: expected lengths of 1 or more", f.Name, f.Array.DType(), f.Array.Dims)
		}
		inputs[i] = Input{Name: f.Name, Shape: shapes.Make(dtypeOf(f.Array), f.Array.Dims...), Of: b.Part.Of}
		if b.Partial() && len(f.Array.Dims) > 0 {
			inputs[i].Shape.Dimensions[0] *= b.Part.Of
		}
	}
	return inputs, nil
}

// Takes reports whether an array has the input's dtype and dimensions, or its part's, and as many elements. Package
// managed selects programs by it.
func (in *Input) Takes(a data.Array) bool {
	want := in.Shape.Dimensions
	if len(a.Dims) != len(want) {
		return false
	}
	size := 1
	for i, d := range a.Dims {
		size *= d
		if i == 0 && in.Of > 1 {
			d *= in.Of
		}
		if d != want[i] {
			return false
		}
	}
	t, n := dtype.Of(a.Flat)
	return dtypes.DType(t) == in.Shape.DType && n == size
}

func (in *Input) accept(a data.Array) error {
	if in.Takes(a) {
		return nil
	}
	if err := a.Check(); err != nil {
		return fmt.Errorf("%s of the batch: %w", in.Name, graphs.Inner(err))
	}
	part := ""
	if in.Of > 1 {
		part = fmt.Sprintf(" in %d parts", in.Of)
	}
	return fmt.Errorf("%s of the batch: expected %s%s, got %T of dimensions %v", in.Name, in.Shape, part, a.Flat, a.Dims)
}

func dtypeOf(a data.Array) dtypes.DType {
	t, _ := dtype.Of(a.Flat)
	return dtypes.DType(t)
}
