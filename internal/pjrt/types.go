package pjrt

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type DeviceDescription struct {
	ID      int    // unique over all processes
	Process int    // index of the device's process
	Kind    string // vendor's name, like "NVIDIA H100"
	Text    string
}

type Memory struct {
	ID      int
	Kind    string // "device", "pinned_host", …
	Default bool
}

// MemoryStats are in bytes, -1 if unknown.
type MemoryStats struct {
	InUse, PeakInUse        int64
	Limit                   int64
	Reserved, PeakReserved  int64
	Reservable              int64
	Pool, PeakPool          int64
	LargestFree, LargestOne int64 // largest free block, largest allocation so far
	Allocations             int64 // a count
}

// ProgramMemory is a program's memory per device in bytes. Aliased counts arguments that are outputs.
type ProgramMemory struct {
	Code, Arguments, Outputs, Aliased, Temporary, Peak               int64
	HostCode, HostArguments, HostOutputs, HostAliased, HostTemporary int64
}

type Compiled struct {
	Name                string
	Parameters, Outputs []Shape
	Donated             map[int]int
	Optimized           []byte
	Format              string
	Cost                map[string]any
	Memory              *ProgramMemory
	Fingerprint         string
}

type CallOptions struct {
	// InPlace maps outputs to arguments of the same shape, whose Buffers hold them after a run: without copy and memory
	// if the program donates the argument.
	InPlace map[int]int
	// Host lists arguments that each run receives as host memory.
	Host []HostInput
	// Read lists outputs, not in InPlace, that [Call.RunInto] copies to the host.
	Read []int
}

type HostInput struct {
	Argument int
	Shape    Shape
}

type ExecuteOptions struct {
	// Keep lists donated arguments that the program copies instead of overwriting.
	Keep []int
	// Device is the device of a portable program.
	Device *Device
	// LaunchID, if not 0, identifies a run over several processes.
	LaunchID int
}

type Argument struct{ Device, Index int }

var ErrArgumentsLost = errors.New("arguments were lost")

type RunError struct {
	Program string
	// Lost lists the arguments that the program began to overwrite.
	Lost []Argument
	// Ran reports that the program succeeded and replaced arguments, but a copy to the host or a release failed.
	Ran bool
	Err error
}

func (e *RunError) Error() string {
	text := during(e.Err, "run %s", e.Program).Error()
	if e.Ran {
		text += " (after the program had ended well)"
	}
	if len(e.Lost) == 0 {
		return text
	}
	var list strings.Builder
	for i, a := range e.Lost {
		if i == 8 {
			fmt.Fprintf(&list, " and %d more", len(e.Lost)-i)
			break
		}
		fmt.Fprintf(&list, " %d (device %d)", a.Index, a.Device)
	}
	return text + ": " + ErrArgumentsLost.Error() + ":" + list.String()
}

func (e *RunError) Unwrap() error { return e.Err }

func (e *RunError) Is(target error) bool { return target == ErrArgumentsLost && len(e.Lost) > 0 }

type Array struct {
	Shape
	Data []byte
	// Strides has the bytes between elements of each dimension; empty: row-major.
	Strides []int
}

func (a Array) check() error {
	need, err := a.Shape.Size()
	if err != nil {
		return err
	}
	if len(a.Strides) == 0 {
		if len(a.Data) != need {
			return fmt.Errorf("pjrt: array %v: %w: expected %d bytes, got %d", a.Shape, ErrInvalidArgument, need, len(a.Data))
		}
		return nil
	}
	if len(a.Strides) != len(a.Dims) {
		return fmt.Errorf("pjrt: array %v: %w: expected %d strides, got %d", a.Shape, ErrInvalidArgument, len(a.Dims), len(a.Strides))
	}
	last := a.DType.Size()
	for i, stride := range a.Strides {
		if stride < 0 {
			return fmt.Errorf("pjrt: array %v: %w: stride %d is negative (%d)", a.Shape, ErrInvalidArgument, i, stride)
		}
		if steps := a.Dims[i] - 1; steps > 0 && stride > (len(a.Data)-last)/steps {
			return fmt.Errorf("pjrt: array %v: %w: strides %v lead out of its %d bytes", a.Shape, ErrInvalidArgument, a.Strides, len(a.Data))
		} else if steps > 0 {
			last += steps * stride
		}
	}
	if need > 0 && last > len(a.Data) {
		return fmt.Errorf("pjrt: array %v: %w: strides %v lead out of its %d bytes", a.Shape, ErrInvalidArgument, a.Strides, len(a.Data))
	}
	return nil
}

// KeyValueStore connects the clients of several processes. A plugin's threads call it concurrently.
//
// The plugin receives the code of an [*Error], a sentinel like [ErrKeyNotFound], or context's errors; otherwise
// UNKNOWN.
type KeyValueStore interface {
	// Get waits for the key. It returns [ErrDeadline] after the timeout.
	Get(key string, timeout time.Duration) ([]byte, error)
	// TryGet returns [ErrKeyNotFound] if the key does not exist.
	TryGet(key string) ([]byte, error)
	// Put returns [ErrKeyExists] if the key has a value.
	Put(key string, value []byte) error
}

type Extension int

var extensionNames = []string{
	"GPU custom call", "profiler", "custom partitioner", "stream", "layouts", "FFI", "memory descriptions", "Triton",
	"raw buffer", "phase compile", "example", "unknown", "cross-host transfers", "executable metadata", "callback",
	"host allocator",
}

func (e Extension) String() string {
	if e < 0 || int(e) >= len(extensionNames) {
		return fmt.Sprintf("extension %d", int(e))
	}
	return extensionNames[e]
}

// Execution is a run that may be in progress. The caller owns outputs and events, by device.
type Execution struct {
	Outputs [][]*Buffer
	Done    []*Event
}

func (x *Execution) Await() error {
	var first error
	for _, e := range x.Done {
		first = firstError(first, e.Await())
	}
	return first
}

func (x *Execution) Close() error {
	var first error
	note := func(err error) {
		if !isClosed(err) {
			first = firstError(first, err)
		}
	}
	for _, list := range x.Outputs {
		for _, b := range list {
			note(b.Close())
		}
	}
	for _, e := range x.Done {
		note(e.Close())
	}
	return first
}

type Counts struct {
	Clients, Buffers, Executables, Events, Views int64
	Topologies                                   int64
	Calls                                        int64
	Callbacks                                    int64 // Go functions and stores that a plugin may call
	Allocations                                  int64 // blocks of C memory
	// Collected counts objects that the garbage collector closed, and never decreases.
	Collected int64
}
