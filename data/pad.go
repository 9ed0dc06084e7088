package data

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// Mask names the bool field that marks the real examples of a padded batch. A training step refuses a batch without
// any; in a test step it counts for nothing, and its means are 0.
const Mask = "mask"

// Pad extends a batch to size rows with copies of its last row, with a [Mask]. [Batch].Size counts the real examples.
func Pad(b Batch, size int) (Batch, error) {
	rows, err := b.divisible()
	if err != nil {
		return Batch{}, fmt.Errorf("data: pad: %w", err)
	}
	if rows < 1 || size < rows {
		return Batch{}, fmt.Errorf("data: pad a batch of %d rows to %d: expected a size of at least 1, and at most that number of rows", rows, size)
	}
	for _, f := range b.Fields {
		if _, ok := arrays.Size(dimsOf(f.Array, size)...); !ok {
			return Batch{}, fmt.Errorf("data: pad a batch of %d rows to %d: field %q would have more than %d elements: %w", rows, size, f.Name, arrays.MostElements, ErrLimit)
		}
	}
	mask, masked := b.mask()
	padded := b.alone()
	padded.Fields, padded.Size = make([]Field, 0, len(b.Fields)+1), b.own()
	if !masked {
		mask = make([]bool, rows)
		for i := range mask {
			mask[i] = i < padded.Size
		}
	}
	from := make([]int, size)
	for i := range from {
		from[i] = min(i, rows-1)
	}
	counts := Named(Mask, append(slices.Clone(mask), make([]bool, size-rows)...), size)
	for _, f := range b.Fields {
		if f.Name == Mask {
			padded.Fields = append(padded.Fields, counts)
		} else {
			padded.Fields = append(padded.Fields, Field{f.Name, f.Array.gather(from, dimsOf(f.Array, size)), f.Classes})
		}
	}
	if !masked {
		padded.Fields = append(padded.Fields, counts)
	}
	return padded, nil
}
