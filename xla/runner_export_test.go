package xla

import (
	"errors"
	"unsafe"

	"github.com/gomlx/compute"
)

// Address returns the address of a buffer's memory.
func Address(of compute.Buffer) (unsafe.Pointer, error) {
	b, err := bufferOf(of)
	if err != nil {
		return nil, err
	}
	view, err := b.View()
	if err != nil {
		return nil, err
	}
	return unsafe.Pointer(unsafe.SliceData(view.Data)), errors.Join(view.Close())
}
