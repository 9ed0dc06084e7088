package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

const maxSizes = 64

// checkSizes ensures that padding affects neither state nor logs.
func (p *Program) checkSizes() error {
	if len(p.Sizes) == 0 {
		return nil
	}
	if len(p.Sizes) > maxSizes {
		return fmt.Errorf("it has %d sizes of batches, expected at most %d", len(p.Sizes), maxSizes)
	}
	rows := -1
	for _, v := range slices.Concat(p.Inputs, p.Outputs) {
		switch {
		case v.Role == State && v.Replaces == "":
			continue
		case v.Role == Log || v.Role == State:
			return fmt.Errorf("it has several batch sizes and an output %q, %s: expected a model, not a step that logs or changes its state", v.Name, v.Role)
		case len(v.Shape.Dimensions) == 0 || rows >= 0 && v.Shape.Dimensions[0] != rows:
			return fmt.Errorf("it has several sizes of batches, and %q is %s: expected a row for each example", v.Name, v.Shape)
		}
		rows = v.Shape.Dimensions[0]
	}
	if rows < 1 {
		return errors.New("it has several sizes of batches, and no input or output of a batch")
	}
	for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
		if text := p.Sizes[size]; size < 1 || size == rows || strings.TrimSpace(text) == "" || len(text) > maxText {
			return fmt.Errorf("batch size %d has a program of %d bytes, in addition to that of size %d: expected sizes of 1 or more, once each, and programs of 1 to %d bytes", size, len(text), rows, maxText)
		}
	}
	return nil
}

func sized(values []Value, rows int) []Value {
	values = slices.Clone(values)
	for i, v := range values {
		if v.Role == Batch || v.Role == Output {
			values[i].Shape = withRows(v.Shape, rows)
		}
	}
	return values
}

func withRows(s shapes.Shape, rows int) shapes.Shape {
	s.Dimensions = slices.Clone(s.Dimensions)
	s.Dimensions[0] = rows
	return s
}

func (p *Program) rows() int {
	for _, v := range p.Inputs {
		if v.Role == Batch {
			return v.Shape.Dimensions[0]
		}
	}
	return 0
}

func resized(t *tensors.Tensor, rows int) (*tensors.Tensor, error) {
	to := tensors.FromShape(withRows(t.Shape(), rows))
	var inner error
	outer := to.MutableBytes(func(into []byte) {
		inner = t.ConstBytes(func(from []byte) {
			at, width := copy(into, from), len(into)/max(rows, 1)
			for width > 0 && at < len(into) {
				at += copy(into[at:], into[at-width:at])
			}
		})
	})
	return to, errors.Join(outer, inner)
}
