package strategies

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Leftover selects what to do with a batch that the devices do not divide.
type Leftover int

const (
	// RefuseLeftover returns [ErrLeftover].
	RefuseLeftover Leftover = iota
	// DropLeftover omits the last examples, as few as necessary; it is an error if none remain.
	DropLeftover
	// PadLeftover fills the batch by [data.Pad], with a mask that excludes the copies from losses and metrics. Batches
	// that divide evenly get no mask, so a step may have two programs.
	PadLeftover
)

// apply counts rows, also those of padding.
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

// divides ignores fields without axes; compilation refuses them.
func divides(b data.Batch, devices int) bool {
	return !slices.ContainsFunc(b.Fields, func(f data.Field) bool {
		return len(f.Array.Dims) > 0 && f.Array.Dims[0]%devices != 0
	})
}
