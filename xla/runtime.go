package xla

import (
	"log/slog"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/gate"
)

// Runtime is an opened plugin with its devices, a GoMLX backend. Goroutines may share it, its programs and values (see
// [Program]).
type Runtime struct {
	compute.Backend
	plugin Plugin
	log    *slog.Logger
	closed atomic.Bool
	uses   gate.Gate // for the Go backend: a PJRT client counts its users
}

var _ compute.Backend = (*Runtime)(nil)

// Plugin returns the opened plugin.
func (r *Runtime) Plugin() Plugin { return r.plugin }

// Logger returns the logger of [Log], never nil.
func (r *Runtime) Logger() *slog.Logger { return r.log }

// Devices describes each device of this process; none after Close.
func (r *Runtime) Devices() []string {
	if r.closed.Load() {
		return nil
	}
	described := make([]string, r.Backend.NumDevices())
	for i := range described {
		described[i] = r.DeviceDescription(compute.DeviceNum(i))
	}
	return described
}

// IsFinalized reports whether Close was called.
func (r *Runtime) IsFinalized() bool { return r.closed.Load() }

// Builder starts a program.
func (r *Runtime) Builder(name string) compute.Builder {
	if r.closed.Load() {
		return closedBuilder{notimplemented.Builder{ErrFn: func(compute.OpType) error { return errClosed }}}
	}
	return r.Backend.Builder(name)
}

// BufferFromFlatData copies a slice to a device.
func (r *Runtime) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if r.closed.Load() {
		return nil, errClosed // GoMLX's backend would dereference nil
	}
	return r.Backend.BufferFromFlatData(device, flat, shape)
}

type closedBuilder struct{ notimplemented.Builder }

func (closedBuilder) Compile() (compute.Executable, error) { return nil, errClosed }

func (closedBuilder) NewFunction(string) (compute.Function, error) { return nil, errClosed }
