package strategies

import (
	"fmt"

	"github.com/lazo-ml/lazo/data"
)

// Leftover is what becomes of a batch whose examples cannot be divided evenly over the devices.
type Leftover int

const (
	// RefuseLeftover: it is an error, [ErrLeftover].
	RefuseLeftover Leftover = iota
	// DropLeftover: as few examples as need be are left out, the last ones. A batch of which nothing is left is an error.
	DropLeftover
	// PadLeftover: the batch is filled up by [data.Pad], whose mask leaves the copies out of losses and metrics. One that can be
	// divided stays as it is, without a mask: so a step that knows nothing of masks makes these, and has a second program for the
	// others.
	PadLeftover
)

func (l Leftover) apply(b data.Batch, devices int) (data.Batch, error) {
	over := b.Size % devices
	if over == 0 {
		return b, nil
	}
	switch {
	case l == PadLeftover:
		return data.Pad(b, b.Size-over+devices)
	case l == DropLeftover && b.Size > devices:
		kept := b
		kept.Fields, kept.Size = make([]data.Field, len(b.Fields)), b.Size-over
		for i, f := range b.Fields {
			kept.Fields[i] = data.Field{Name: f.Name, Array: f.Array.Slice(0, kept.Size)}
		}
		return kept, nil
	}
	return b, fmt.Errorf("strategies: data parallel: a batch of %d examples over %d devices: %w: take a batch of a multiple of %d, or OnLeftover",
		b.Size, devices, ErrLeftover, devices)
}
