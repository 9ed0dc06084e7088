package pjrt

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// DeviceDescription is what a plugin tells of a device, be it there or described.
type DeviceDescription struct {
	ID      int    // unique among the devices of all processes
	Process int    // the number of the process that the device belongs to
	Kind    string // the vendor's name of the device, "NVIDIA H100"
	Text    string // the plugin's text about it
}

// Memory is a kind of memory that a device can reach.
type Memory struct {
	ID      int
	Kind    string // "device", "pinned_host", …
	Default bool   // where buffers go
}

// MemoryStats is the state of a device's memory in bytes. What the plugin does not tell is -1.
type MemoryStats struct {
	InUse, PeakInUse        int64
	Limit                   int64
	Reserved, PeakReserved  int64
	Reservable              int64
	Pool, PeakPool          int64
	LargestFree, LargestOne int64 // the largest free block, the largest allocation so far
	Allocations             int64 // a number, not bytes
}

// ProgramMemory is the memory in bytes that a program needs on each device. Aliased is what is both argument and
// output.
type ProgramMemory struct {
	Code, Arguments, Outputs, Aliased, Temporary, Peak               int64
	HostCode, HostArguments, HostOutputs, HostAliased, HostTemporary int64
}

// Compiled is what a plugin tells of a program that it compiled for a [Topology].
type Compiled struct {
	Name                string
	Parameters, Outputs []Shape // on each device
	// Donated maps each output that is written over an argument to that argument.
	Donated map[int]int
	// Optimized is the program as the devices would run it, and Format its format: see [Executable.OptimizedProgram].
	Optimized []byte
	Format    string
	// Cost is what the compiler reckons of a run; nil where the plugin does not reckon.
	Cost map[string]any
	// Memory is what the compiler reckons of the program's memory on a device; nil where it does not.
	Memory *ProgramMemory
	// Fingerprint is the same for the same program, options and compiler; "" where the plugin has none.
	Fingerprint string
}

// CallOptions says what the parts of a [Call] are.
type CallOptions struct {
	// InPlace maps outputs to arguments of the same shape: after a run, the Buffer of the argument holds the output.
	// If the program was compiled to write over the argument, no memory is copied or allocated for it.
	InPlace map[int]int
	// Host are arguments that each run is given as host memory.
	Host []HostInput
	// Read are outputs, none of them in an argument's place, that [Call.RunInto] copies to the host.
	Read []int
}

// HostInput is an argument that comes from the host.
type HostInput struct {
	Argument int
	Shape    Shape
}

// ExecuteOptions changes what [Executable.Execute] does.
type ExecuteOptions struct {
	// Keep are arguments that the program may not write over, though it was compiled to: it copies them.
	Keep []int
	// Device is where a portable program runs.
	Device *Device
	// LaunchID, if not 0, is the same for the runs on several processes that belong together.
	LaunchID int
}

// Argument is a place in the arguments of a run.
type Argument struct{ Device, Index int }

// ErrArgumentsLost is matched by a [*RunError] with arguments that are lost.
var ErrArgumentsLost = errors.New("arguments were lost")

// RunError says what a failed run left. Nothing that the run made exists any more.
type RunError struct {
	Program string
	// Lost are the arguments that hold nothing any more: the program had begun to write over them. All others hold
	// what they held before.
	Lost []Argument
	// Ran: the program ended well and what it replaces is replaced; what failed is the freeing of something after it.
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

// Unwrap gives the cause.
func (e *RunError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrArgumentsLost) hold if there are some.
func (e *RunError) Is(target error) bool { return target == ErrArgumentsLost && len(e.Lost) > 0 }

// Array is an array in host memory.
type Array struct {
	Shape
	Data []byte // see [Bytes]
	// Strides is the distance in bytes between neighbours of each dimension, none for rows one after the other.
	Strides []int
}

// check holds the memory against the shape.
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

// KeyValueStore is what the clients of several processes share to find each other. A plugin calls it from threads of
// its own, several at once.
//
// An error goes to the plugin with a code: that of an [*Error], of a sentinel such as [ErrKeyNotFound], or of
// context's; UNKNOWN otherwise.
type KeyValueStore interface {
	// Get waits for the key until the timeout, then gives [ErrDeadline].
	Get(key string, timeout time.Duration) ([]byte, error)
	// TryGet gives [ErrKeyNotFound] for a key that is not there.
	TryGet(key string) ([]byte, error)
	// Put gives [ErrKeyExists] for a key that has a value.
	Put(key string, value []byte) error
}

// Extension is the number of an addition to the API that a plugin may have.
type Extension int

var extensionNames = []string{
	"GPU custom call", "profiler", "custom partitioner", "stream", "layouts", "FFI", "memory descriptions", "Triton",
	"raw buffer", "phase compile", "example", "unknown", "cross-host transfers", "executable metadata", "callback",
	"host allocator",
}

// String names the extension, or gives its number if it is a new one.
func (e Extension) String() string {
	if e < 0 || int(e) >= len(extensionNames) {
		return fmt.Sprintf("extension %d", int(e))
	}
	return extensionNames[e]
}

// Execution is a run of a program that may not have ended. Its outputs and events are the caller's.
type Execution struct {
	Outputs [][]*Buffer // for each device
	Done    []*Event    // for each device: when its part has ended
}

// Await waits for all devices and gives the first error.
func (x *Execution) Await() error {
	var first error
	for _, e := range x.Done {
		first = firstError(first, e.Await())
	}
	return first
}

// Close closes the outputs and events that are still open.
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

// Counts says how many things of this package exist in the process. After Close of what a program made, each is what
// it was before.
type Counts struct {
	Clients, Buffers, Executables, Events, Views int64
	Topologies                                   int64
	Calls                                        int64 // prepared calls, and executions in flight
	Callbacks                                    int64 // Go functions that a plugin is still to call
	Allocations                                  int64 // blocks of C memory held by this package
	// Collected counts what the garbage collector had to close. It never falls.
	Collected int64
}
