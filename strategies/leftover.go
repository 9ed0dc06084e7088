package strategies

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Leftover says what happens to a batch if its examples cannot be divided evenly over the devices.
type Leftover int

const (
	// RefuseLeftover: it is an error, [ErrLeftover].
	RefuseLeftover Leftover = iota
	// DropLeftover: as few examples as need be are left out, the last ones. A batch of which nothing is left is an error.
	DropLeftover
	// PadLeftover: the batch is filled up by [data.Pad], with a mask that leaves the copies out of losses and metrics.
	// A batch that can be divided stays as it is, without a mask, so a step has two programs where both kinds come.
	PadLeftover
)

// apply looks at the rows of a batch, not at how many of its examples count: a padded one is divided as it is.
func (l Leftover) apply(b data.Batch, devices int) (data.Batch, error) {
	if divides(b, devices) {
		return b, nil
	}
	rows, err := b.Rows()
	if err != nil {
		return b, fmt.Errorf("strategies: data_parallel over %d devices: %w", devices, err)
	}
	over := rows % devices
	switch {
	case l == PadLeftover:
		return data.Pad(b, rows-over+devices)
	case l == DropLeftover && rows > devices:
		return b.Slice(0, rows-over)
	case l == DropLeftover:
		return b, fmt.Errorf("strategies: data_parallel: a batch of %d examples over %d devices: %w: nothing would be left of it: take larger batches, or PadLeftover",
			rows, devices, ErrLeftover)
	}
	return b, fmt.Errorf("strategies: data_parallel: a batch of %d examples over %d devices: %w: take a batch of a multiple of %d, or Parallel.Leftover",
		rows, devices, ErrLeftover, devices)
}

// divides tells whether each field can be divided evenly; one without axes is refused where the step is compiled.
func divides(b data.Batch, devices int) bool {
	return !slices.ContainsFunc(b.Fields, func(f data.Field) bool {
		return len(f.Array.Dims) > 0 && f.Array.Dims[0]%devices != 0
	})
}
