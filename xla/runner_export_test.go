package xla

import (
	"errors"
	"unsafe"

	"github.com/gomlx/compute"
)

// Calls returns how many runs of p were in progress at once, at most.
func Calls(p *Program) int { return len(p.runs.(*calls).idle) }

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
