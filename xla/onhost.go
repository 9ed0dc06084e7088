package xla

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// ToHost waits for a value and copies it into memory of its exact size, row-major, in the host's byte order.
func ToHost(b compute.Buffer, memory []byte) error {
	if c, ok := b.(copier); ok {
		return c.copyTo(memory)
	}
	ours, err := bufferOf(b)
	if err != nil {
		return err
	}
	return ours.ToHost(memory)
}

type copier interface{ copyTo(memory []byte) error }

func bufferOf(b compute.Buffer) (*buffer, error) {
	if _, ok := b.(*onHost); ok {
		return nil, errors.New("xla: the value is on the host, where its run has read it (Built.Read): copy it by CopyToDevice, and give the program the copy")
	}
	ours, ok := b.(*buffer)
	if !ok || ours == nil {
		return nil, fmt.Errorf("xla: a buffer of type %T does not belong to this runtime", b)
	}
	return ours, nil
}

type onHost struct {
	of    *pjrtClient
	shape shapes.Shape
	flat  any
}

var _ compute.Buffer = (*onHost)(nil)

// OnHost returns the elements of a [Built].Read output, a slice that the caller owns. ok is false for other values.
func OnHost(b compute.Buffer) (flat any, ok bool) {
	h, ok := b.(*onHost)
	if !ok || h == nil {
		return nil, false
	}
	return h.flat, true
}

func (h *onHost) Backend() compute.Backend              { return h.of.runtime }
func (h *onHost) Finalize() error                       { return nil }
func (h *onHost) Shape() (shapes.Shape, error)          { return h.shape, nil }
func (h *onHost) DeviceNum() (compute.DeviceNum, error) { return 0, nil }
func (h *onHost) Data() (any, error)                    { return nil, errNotShared }

func (h *onHost) memory() ([]byte, error) { return memoryOf(h.flat, fromGoMLX(h.shape)) }

func (h *onHost) ToFlatData(flat any) error {
	to, err := memoryOf(flat, fromGoMLX(h.shape))
	if err != nil {
		return err
	}
	return h.copyTo(to)
}

func (h *onHost) copyTo(to []byte) error {
	from, err := h.memory()
	if err == nil && len(to) != len(from) {
		err = fmt.Errorf("xla: fetch %s: expected room for %d bytes, got %d", h.shape, len(from), len(to))
	}
	copy(to, from)
	return err
}

func (h *onHost) CopyToDevice(n compute.DeviceNum) (compute.Buffer, error) {
	return h.of.BufferFromFlatData(n, h.flat, h.shape)
}
