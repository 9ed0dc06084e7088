package strategies

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// dividedBatch pads or refuses a batch that the devices do not divide. It counts rows, also of padding.
func (p *parallel) dividedBatch(b data.Batch) (data.Batch, error) {
	devices := p.devices / p.model
	if divides(b, devices) {
		return b, nil
	}
	rows, err := b.Rows()
	switch {
	case err != nil:
		return b, fmt.Errorf("strategies: data_parallel over %d devices: %w", devices, err)
	case p.pad:
		return data.Pad(b, rows-rows%devices+devices)
	}
	return b, fmt.Errorf("strategies: data_parallel: a batch of %d examples over %d devices: %w: use a batch size that is a multiple of %d, or Parallel.Pad",
		rows, devices, ErrLeftover, devices)
}

// divides ignores fields without axes; compilation refuses them.
func divides(b data.Batch, devices int) bool {
	return !slices.ContainsFunc(b.Fields, func(f data.Field) bool {
		return len(f.Array.Dims) > 0 && f.Array.Dims[0]%devices != 0
	})
}
