package strategies

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla"
)

// Jit compiles each step to one program and runs it on the first device of a runtime.
func Jit(on *xla.Runtime) Strategy {
	autodiff.Install()
	return &jit{on}
}

type jit struct{ runtime *xla.Runtime }

func (j *jit) String() string        { return "jit" }
func (j *jit) Runtime() *xla.Runtime { return j.runtime }
func (j *jit) NumDevices() int       { return 1 }

func (j *jit) Put(_ string, t *tensors.Tensor) (Buffer, error) {
	if j.runtime.IsFinalized() {
		return nil, fmt.Errorf("strategies: jit: move %s to the device: the runtime is %w", t.Shape(), xla.ErrClosed)
	}
	if on, err := t.Backend(); err != nil || on != compute.Backend(j.runtime) {
		if err := t.ToLocal(); err != nil { // GoMLX moves no tensor between backends
			return nil, fmt.Errorf("strategies: jit: move %s to the device: %w", t.Shape(), xla.WrapError(err))
		}
	}
	b, err := t.DonateBuffer(j.runtime, 0)
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: move %s to the device: %w", t.Shape(), xla.WrapError(err))
	}
	return b, nil
}

func (j *jit) Fetch(b Buffer) (*tensors.Tensor, error) {
	if b == nil { // the runtime would panic
		return nil, errors.New("strategies: jit: fetch: there is no value (nil)")
	}
	shape, err := b.Shape()
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: fetch: %w", xla.WrapError(err))
	}
	t := tensors.FromShape(shape)
	var copyErr error
	err = t.MutableFlatData(func(flat any) { copyErr = b.ToFlatData(flat) })
	if err == nil {
		err = copyErr
	}
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: fetch %s: %w", shape, xla.WrapError(err))
	}
	return t, nil
}

func (j *jit) FetchInto(b Buffer, memory []byte) error {
	if err := xla.ToHost(b, memory); err != nil {
		return fmt.Errorf("strategies: jit: fetch into %d bytes: %w", len(memory), xla.WrapError(err))
	}
	return nil
}

func (j *jit) Free(buffers ...Buffer) error {
	var first error
	for _, b := range buffers {
		if b == nil {
			continue
		}
		if err := b.Finalize(); err != nil && first == nil {
			first = fmt.Errorf("strategies: jit: free: %w", xla.WrapError(err))
		}
	}
	return first
}

func (j *jit) Batch(b data.Batch) (data.Batch, error) { return b, counted(&b) }

func (j *jit) Compile(s Step) (Program, error) { return compile(j, s, xla.Placement{}) }
