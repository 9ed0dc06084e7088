package images

import (
	"bytes"
	"testing"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// Every number that says a size or a limit may be anything: it is an error that names it, or it works. None ends the
// process, hangs, or takes the memory that it speaks of.
func TestR29_anySizeIsAnErrorOrWorks(t *testing.T) {
	pictures := data.Array{Flat: make([]uint8, 8), Dims: []int{2, 2, 2, 1}}
	picture := pngOf(t, ramp(3, 3))
	image := func(f Format) error { return datatest.Second(Read(bytes.NewReader(picture), f)) }
	datatest.Sizes(t, map[string]func(n int) error{
		"RandomCrop":              func(n int) error { return augmented(pictures, RandomCrop(n, 1, 0)) },
		"RandomCrop, the padding": func(n int) error { return augmented(pictures, RandomCrop(1, 1, n)) },
		"RandomShift":             func(n int) error { return augmented(pictures, RandomShift(n, n)) },
		"Format.Height":           func(n int) error { return image(Format{Height: n, Width: 1, Resize: Stretch}) },
		"Format, both":            func(n int) error { return image(Format{Height: n, Width: n, Resize: Stretch}) },
		"Format.Channels":         func(n int) error { return image(Format{Height: 1, Width: 1, Channels: n, Resize: Stretch}) },
		"Format.Resize":           func(n int) error { return image(Format{Height: 3, Width: 3, Resize: Resize(n)}) },
		"Format.MaxPixels":        func(n int) error { return image(Format{Height: 3, Width: 3, MaxPixels: n}) },
	})
}

func augmented(a data.Array, change Augmentation) error {
	_, err := Augment(1, "x", change)(data.Batch{Fields: []data.Field{{Name: "x", Array: a}}, Size: a.Len()})
	return err
}
