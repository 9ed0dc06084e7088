package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/hlo"
)

// ErrNotRun reports that a machine of [OpenTopology] has no numbers.
var ErrNotRun = errors.New("a described machine holds no values")

type described struct {
	runtime    *Runtime
	plugin     Plugin
	name       string // "v5e:2x2"
	machine    aot.Machine
	about      *aot.Description
	limit      time.Duration
	cache      *cache
	log        *slog.Logger
	widestHead int
	ctx        context.Context // ends with Close
	end        context.CancelFunc
	compiling  gate.Gate // one at a time: a compiler takes gigabytes
	closed     atomic.Bool
	planned    string // file for the first training step, under lazo plan
}

func (d *described) Name() string           { return "lazo" }
func (d *described) String() string         { return "lazo:" + d.plugin.Kind + ":" + d.name }
func (d *described) Description() string    { return fmt.Sprintf("%v, described: %s", d.plugin, d.name) }
func (d *described) NumDevices() int        { return len(d.about.Devices) }
func (d *described) IsFinalized() bool      { return d.closed.Load() }
func (d *described) kind() string           { return d.plugin.Kind }
func (d *described) HasSharedBuffers() bool { return false }

func (d *described) Finalize() {
	d.closed.Store(true)
	d.end()
}

func (d *described) device(n compute.DeviceNum) error {
	if n < 0 || int(n) >= len(d.about.Devices) {
		return fmt.Errorf("xla: device %d: %s has %d", n, d.name, len(d.about.Devices))
	}
	return nil
}

func (d *described) DeviceDescription(n compute.DeviceNum) string {
	if err := d.device(n); err != nil {
		return err.Error()
	}
	return d.about.Devices[n].Text
}

func (d *described) Capabilities() compute.Capabilities { return capabilities(d.widestHead) }

func (d *described) builder(name string, compile func(*hlo.Module) (compute.Executable, error)) *hlo.Builder {
	return builderFor(name, d.plugin.Kind, d.widestHead, compile)
}

type abstract struct {
	of    *described
	shape shapes.Shape
	on    compute.DeviceNum
	gone  atomic.Bool
}

var _ compute.Buffer = (*abstract)(nil)

func (d *described) abstract(n compute.DeviceNum, shape shapes.Shape) (*abstract, error) {
	switch {
	case d.closed.Load():
		return nil, errClosed
	case !shape.Ok():
		return nil, fmt.Errorf("xla: a value of shape %s on %s: %w", shape, d.name, ErrInvalidArgument)
	}
	if err := d.device(n); err != nil {
		return nil, err
	}
	return &abstract{of: d, shape: shape.Clone(), on: n}, nil
}

func (b *abstract) Backend() compute.Backend { return b.of.runtime }

func (b *abstract) Finalize() error {
	switch {
	case b.of.closed.Load():
		return errClosed
	case !b.gone.CompareAndSwap(false, true):
		return fmt.Errorf("xla: the value is %w", ErrClosed)
	}
	return nil
}

func (b *abstract) Shape() (shapes.Shape, error)          { return b.shape, nil }
func (b *abstract) DeviceNum() (compute.DeviceNum, error) { return b.on, nil }
func (b *abstract) ToFlatData(any) error                  { return b.notRun() }
func (b *abstract) Data() (any, error)                    { return nil, errNotShared }
func (b *abstract) copyTo([]byte) error                   { return b.notRun() }

func (b *abstract) CopyToDevice(n compute.DeviceNum) (compute.Buffer, error) {
	if n == b.on {
		return nil, fmt.Errorf("xla: copy to device %d: the buffer is already on this device", n)
	}
	return b.of.put(n, b.shape)
}

func (d *described) put(n compute.DeviceNum, shape shapes.Shape) (compute.Buffer, error) {
	b, err := d.abstract(n, shape)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (b *abstract) notRun() error {
	if b.of.closed.Load() {
		return errClosed
	}
	return fmt.Errorf("xla: read a value of %s: %w: %s was opened with OpenTopology, which compiles and runs nothing: ask a program for its Cost, Memory or Optimized, and run it on a machine with the devices",
		b.shape, ErrNotRun, b.of.name)
}

func (d *described) BufferFromFlatData(n compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	s := fromGoMLX(shape)
	var err error
	if bits := packedBits(s); bits != 0 {
		_, err = packedOf(flat, s, bits)
	} else {
		_, err = memoryOf(flat, s)
	}
	if err != nil {
		return nil, err
	}
	return d.put(n, shape)
}

func (d *described) NewSharedBuffer(compute.DeviceNum, shapes.Shape) (compute.Buffer, any, error) {
	return nil, nil, errNotShared
}
