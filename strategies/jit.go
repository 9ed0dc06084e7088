package strategies

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla"
)

// Jit compiles each step to one program and runs it on a runtime's first device.
func Jit(on *xla.Runtime) Strategy {
	return &jit{firstDevice{on, "jit"}}
}

type jit struct{ firstDevice }

func (j *jit) Compile(s Step) (Program, error) {
	if err := j.ready(); err != nil {
		return nil, err
	}
	return compile(j, s, xla.Placement{})
}

type firstDevice struct {
	runtime *xla.Runtime
	name    string
}

func (f *firstDevice) String() string        { return f.name }
func (f *firstDevice) Runtime() *xla.Runtime { return f.runtime }
func (f *firstDevice) NumDevices() int       { return 1 }

// ready refuses a nil runtime, and one of several processes, which would train separate models.
func (f *firstDevice) ready() error {
	if f.runtime == nil {
		return fmt.Errorf("strategies: %s: the runtime is nil: open one with xla.Open", f.name)
	}
	if job := f.runtime.Job(); job != nil {
		return fmt.Errorf("strategies: %s: the runtime is of %d processes, each of which would train its own model: use DataParallel, or open a runtime without xla.Across", f.name, job.Size())
	}
	return nil
}

func (f *firstDevice) Put(_ string, t *tensors.Tensor) (compute.Buffer, error) {
	if err := f.ready(); err != nil {
		return nil, err
	}
	if f.runtime.IsFinalized() {
		return nil, fmt.Errorf("strategies: %s: move %s to the device: the runtime is %w", f.name, t.Shape(), xla.ErrClosed)
	}
	if on, err := t.Backend(); err != nil || on != compute.Backend(f.runtime) {
		if err := t.ToLocal(); err != nil { // GoMLX moves no tensor between backends
			return nil, fmt.Errorf("strategies: %s: move %s to the device: %w", f.name, t.Shape(), xla.WrapError(err))
		}
	}
	b, err := t.DonateBuffer(f.runtime, 0)
	if err != nil {
		return nil, fmt.Errorf("strategies: %s: move %s to the device: %w", f.name, t.Shape(), xla.WrapError(err))
	}
	return b, nil
}

func (f *firstDevice) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	if b == nil { // the runtime would panic
		return nil, fmt.Errorf("strategies: %s: fetch: there is no value (nil)", f.name)
	}
	shape, err := b.Shape()
	if err != nil {
		return nil, fmt.Errorf("strategies: %s: fetch: %w", f.name, xla.WrapError(err))
	}
	if f.runtime.Topology() != "" { // no numbers on a described machine
		return nil, fmt.Errorf("strategies: %s: fetch %s: %w", f.name, shape, xla.ToHost(b, nil))
	}
	t := tensors.FromShape(shape)
	var copyErr error
	err = t.MutableFlatData(func(flat any) { copyErr = b.ToFlatData(flat) })
	if err == nil {
		err = copyErr
	}
	if err != nil {
		return nil, fmt.Errorf("strategies: %s: fetch %s: %w", f.name, shape, xla.WrapError(err))
	}
	return t, nil
}

func (f *firstDevice) FetchInto(b compute.Buffer, memory []byte) error {
	if err := xla.ToHost(b, memory); err != nil {
		return fmt.Errorf("strategies: %s: fetch into %d bytes: %w", f.name, len(memory), xla.WrapError(err))
	}
	return nil
}

func (f *firstDevice) Parts(compute.Buffer) ([]Part, bool) { return nil, false }

func (f *firstDevice) Free(buffers ...compute.Buffer) error {
	var first error
	for _, b := range buffers {
		if b == nil {
			continue
		}
		if err := b.Finalize(); err != nil && first == nil {
			first = fmt.Errorf("strategies: %s: free: %w", f.name, xla.WrapError(err))
		}
	}
	return first
}

func (f *firstDevice) Batch(b data.Batch) (data.Batch, error) {
	if err := f.ready(); err != nil {
		return b, err
	}
	if b.Partial() {
		return b, ofBatch(fmt.Errorf("the batch is part %d of %d: %s runs on one device, which takes whole batches: leave data.Share out", b.Part.Rank, b.Part.Of, f.name))
	}
	return b, ofBatch(counted(&b))
}

func counted(b *data.Batch) error {
	most := 0 // 0: no field has axes
	for i := range b.Fields {
		dims := b.Fields[i].Array.Dims
		switch {
		case len(dims) == 0:
		case dims[0] == 0:
			return fmt.Errorf("field %q of the batch is %v, without rows, expected at least 1: leave out batches without examples", b.Fields[i].Name, dims)
		default:
			most = max(most, dims[0])
		}
	}
	if b.Resident != nil {
		if _, err := b.Places(); err != nil {
			return err
		}
	}
	if b.Size == 0 {
		if _, err := b.Rows(); err != nil {
			return fmt.Errorf("%w: expected a row for each example in both; if the first axis of one is not an axis of examples, set Batch.Size to the number of examples", err)
		}
	}
	if b.Size < 0 || b.Size > most && most > 0 {
		return fmt.Errorf("Batch.Size is %d examples, but the fields have %d rows: expected 1 to %[2]d, or 0 to have them counted", b.Size, most)
	}
	return nil
}

func ofBatch(err error) error {
	if err == nil {
		return nil
	}
	return &graphs.Failure{Package: "strategies", Err: err}
}
