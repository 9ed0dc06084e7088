package xla

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// plainGo is GoMLX's backend in Go with one fault mended.
type plainGo struct{ backends.Backend }

func (b plainGo) Builder(name string) backends.Builder {
	return plainGoBuilder{b.Backend.Builder(name)}
}

type plainGoBuilder struct{ backends.Builder }

// RNGBitGenerator keeps the words of the state that the generator does not use. GoMLX's operation writes the two that it
// uses, and leaves in the others whatever lay in memory: equal runs would have states that differ.
func (b plainGoBuilder) RNGBitGenerator(state backends.Op, shape shapes.Shape) (newState, values backends.Op, err error) {
	const used = 2
	newState, values, err = b.Builder.RNGBitGenerator(state, shape)
	if err != nil {
		return nil, nil, err
	}
	written, err := b.Slice(newState, []int{0}, []int{used}, []int{1})
	if err != nil {
		return nil, nil, err
	}
	kept, err := b.Slice(state, []int{used}, []int{backends.RNGStateShape.Dimensions[0]}, []int{1})
	if err != nil {
		return nil, nil, err
	}
	newState, err = b.Concatenate(0, written, kept)
	if err != nil {
		return nil, nil, err
	}
	return newState, values, nil
}
