package strategies

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/xla"
)

// ErrStateLost reports that a step failed on the device while it overwrote the state, which must be recreated or
// restored. A program's first run never returns it, even if memory runs out.
var ErrStateLost = errors.New("the state is lost")

// Part is a block of a sharded value.
type Part struct {
	Start  []int
	Shape  shapes.Shape
	Buffer compute.Buffer
}

// Strategy runs steps.
type Strategy interface {
	fmt.Stringer
	Runtime() *xla.Runtime
	NumDevices() int
	// Put moves a state value to the devices and uses up the tensor. name is its graph parameter.
	Put(name string, t *tensors.Tensor) (compute.Buffer, error)
	Fetch(b compute.Buffer) (*tensors.Tensor, error)
	// FetchInto is Fetch into memory of exactly the value's size, row-major in host byte order.
	FetchInto(b compute.Buffer, memory []byte) error
	// Parts returns the parts of a value sharded over processes that this process saves, each in one process.
	// FetchInto copies a part's buffer without waiting. cut is false for values that each process can fetch whole.
	Parts(b compute.Buffer) (parts []Part, cut bool)
	Free(buffers ...compute.Buffer) error
	// Batch returns a batch in the form for steps, like padded.
	Batch(b data.Batch) (data.Batch, error)
	Compile(Step) (Program, error)
}

// Step is a graph to compile.
type Step struct {
	Name  string
	Batch []Input
	// Block above 1 requests a program of up to this many steps per run.
	Block int
	// Build builds the graph from the batch's nodes. It may panic.
	Build func(g *graph.Graph, batch []*graph.Node) Built
}

// Built is the result of [Step].Build.
type Built struct {
	State   []Slot
	Outputs []*graph.Node
	// Read lists outputs that only the host reads: see [xla.Built].
	Read []int
	// Alone excludes the step from blocks.
	Alone bool
}

// Slot is a state value: its parameter and its new value, nil if unchanged.
type Slot struct {
	Parameter, New *graph.Node
	// Data marks a resident field, whose size does not affect a step's cost.
	Data bool
}

// Graph builds the graph with a parameter per batch field. It panics if a state value would change its shape.
func (s Step) Graph(g *graph.Graph) (batch []*graph.Node, built Built) {
	for _, in := range s.Batch {
		batch = append(batch, graph.Parameter(g, batchPrefix+in.Name, in.Shape))
	}
	built = s.Build(g, batch)
	for _, slot := range built.State {
		if slot.New != nil && !slot.New.Shape().Equal(slot.Parameter.Shape()) {
			panic(fmt.Errorf("value %s of the state would change its shape from %s to %s",
				slot.Parameter.GetParameterName(), slot.Parameter.Shape(), slot.New.Shape()))
		}
	}
	return batch, built
}

const batchPrefix = "batch:"

// Program is a compiled step. It is safe for concurrent use, except for values that a run changes.
type Program interface {
	// Block returns the maximum steps per run: 1, or that of [Step]. It depends only on the graph's structure and
	// sizes.
	Block() int
	// Start runs a step per batch in order, at most Block, and may return before they end. Fields are in the order of
	// [Step].Batch, state and changed in [Built].State's. changed is nil for unchanged values; others replace the old
	// values, which are used up. Outputs have a new first axis of length Block if that is above 1.
	//
	// After an error the state is unchanged, unless the error wraps [ErrStateLost]. running.Wait returns later
	// errors, which wrap ErrStateLost if the run changes the state. running is nil if the run has ended.
	Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running Running, err error)
	// Rebuilds reports whether Start calls [Step].Build.
	Rebuilds() bool
	StableHLO() string
	CompileTime() time.Duration
	// Cost and Memory are estimates ([xla.Program.Cost], [xla.Program.Memory]), [xla.ErrUnimplemented] if steps are not
	// compiled as a whole.
	Cost() (xla.Cost, error)
	Memory() (xla.Memory, error)
	// Compiled returns the runtime's program, nil if steps are not compiled as a whole. Do not run or close it.
	Compiled() *xla.Program
	Close() error
}

type Running interface {
	// Wait waits for the end and returns its error, also repeatedly.
	Wait() error
	// Over reports whether the run has ended, for tests.
	Over() bool
}

var names = []string{"jit", "jit_donate", "data_parallel", "data_parallel_donate", "eager"}

// Parse returns the strategy of a flag: "jit", "data_parallel" or "eager"; "-" equals "_". "jit_donate" and
// "data_parallel_donate" are synonyms: lazo decides about overwriting.
func Parse(name string, on *xla.Runtime) (Strategy, error) {
	switch strings.ReplaceAll(name, "-", "_") {
	case "jit", "jit_donate":
		return Jit(on), nil
	case "data_parallel", "data_parallel_donate":
		return DataParallel(on, Parallel{})
	case "eager":
		return Eager(on), nil
	}
	return nil, fmt.Errorf("strategies: unknown strategy %q; known are: %s", name, strings.Join(names, ", "))
}
