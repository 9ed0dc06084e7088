package data

import (
	"fmt"
	"slices"
)

// Mask is the name of the field that says which examples of a padded batch count: a bool for each.
const Mask = "mask"

// Pad makes a batch one of size examples: copies of its last example follow, and the field [Mask] is true for the examples
// that were there before. A batch with a mask keeps it. Copies, and not zeros, because whatever a model computes of the
// data it can also compute of them. [Batch].Size still counts the real examples.
func Pad(b Batch, size int) (Batch, error) {
	if b.Size < 1 || size < b.Size {
		return Batch{}, fmt.Errorf("data: pad a batch of %d examples to %d: expected 1 at least, and no more than that", b.Size, size)
	}
	rows := make([]int, size)
	for i := range rows {
		rows[i] = min(i, b.Size-1)
	}
	padded := b
	padded.Fields = make([]Field, 0, len(b.Fields)+1)
	masked := false
	for _, f := range b.Fields {
		if f.Name == Mask {
			flat, ok := f.Array.Flat.([]bool)
			if !ok || len(flat) != b.Size {
				return Batch{}, fmt.Errorf("data: pad: field %q is %T of dims %v, expected a bool for each of %d examples", Mask, f.Array.Flat, f.Array.Dims, b.Size)
			}
			masked = true
			f.Array = Array{append(slices.Clone(flat), make([]bool, size-b.Size)...), []int{size}}
		} else if a := f.Array.Gather(rows); a.Flat != nil {
			f.Array = a
		} else {
			return Batch{}, fmt.Errorf("data: pad: field %q: %T of dims %v is not an array of %d examples", f.Name, f.Array.Flat, f.Array.Dims, b.Size)
		}
		padded.Fields = append(padded.Fields, f)
	}
	if !masked {
		mask := make([]bool, size)
		for i := range b.Size {
			mask[i] = true
		}
		padded.Fields = append(padded.Fields, Field{Mask, Array{mask, []int{size}}})
	}
	return padded, nil
}
