package xla

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// onHost is an output of [Built].Read.
type onHost struct {
	of    *client
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

type read struct {
	output int // among outputs
	at     int // among outputs that replace no input
	shape  shapes.Shape
	slice  reflect.Type
}

func (e *executable) readsOf(b Built) (reads []read) {
	at := 0
	for i, o := range e.module.Outputs {
		if _, replaces := b.InPlace[i]; replaces {
			continue
		}
		s := o.Shape
		if slices.Contains(b.Read, i) && s.Size() > 0 && packedBits(fromGoMLX(s)) == 0 {
			reads = append(reads, read{i, at, s, reflect.SliceOf(dtypes.DType(s.DType).GoType())})
		}
		at++
	}
	return reads
}
