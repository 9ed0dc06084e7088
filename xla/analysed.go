package xla

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
)

// Cost is the cost of one run on one device, counted from the optimized program. A plugin counts a loop's body once,
// lazo as often as it runs, if known: compare only costs with the same Counted. A block ([Program.Block]) costs about
// one step.
type Cost struct {
	FLOPs           float64 // floating-point operations
	Transcendentals float64 // exp, log, tanh and similar, not in FLOPs
	BytesAccessed   float64 // read and written by all operations
	// Counted: by lazo ([cost.Count]). Otherwise it is the plugin's estimate.
	Counted bool
	// Uncounted lists operations whose FLOPs are missing, Unknown loops of unknown length, counted once, with their
	// lines; of lazo alone.
	Uncounted, Unknown []string
}

// Memory is a program's memory on its device in bytes. A run takes Arguments + Outputs - Aliased + Temporary. Peak is
// the plugin's, on the CPU without Temporary. Unknown values, like Code on the CPU, are 0.
type Memory struct {
	Code, Arguments, Outputs, Aliased, Temporary, Peak               int64
	HostCode, HostArguments, HostOutputs, HostAliased, HostTemporary int64
}

// DeviceMemory is the state of a device's memory in bytes, -1 if unknown.
type DeviceMemory struct {
	InUse, PeakInUse       int64
	Limit                  int64
	Reserved, PeakReserved int64
	Reservable             int64
	Pool, PeakPool         int64
	// LargestFree is the largest free block, LargestOne the largest allocation so far.
	LargestFree, LargestOne int64
	Allocations             int64
}

type analysed interface {
	cost() (map[string]any, error)
	memory() (Memory, error)
	signature() (inputs, outputs []shapes.Shape, err error)
	optimized() (string, error)
}

var errNoText = fmt.Errorf("%w: the plugin wrote no text into the folder for temporary files: if it should have, check that the folder has free space ($TMPDIR)", ErrUnimplemented)
