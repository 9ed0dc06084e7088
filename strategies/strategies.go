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

// ErrStateLost: a step failed on the device after it had begun to write over the state. It can only be made anew or
// restored. It never comes from the first run of a program, so not from one that does not fit into memory.
var ErrStateLost = errors.New("the state is lost")

// Part is a box of a value that lies cut over devices: where it begins in the whole, and its shape.
type Part struct {
	Start  []int
	Shape  shapes.Shape
	Buffer compute.Buffer
}

// Strategy is a way to run steps.
type Strategy interface {
	fmt.Stringer
	// Runtime is what the strategy runs on.
	Runtime() *xla.Runtime
	// NumDevices is how many of its devices steps run on.
	NumDevices() int
	// Put moves a value of the state to where steps can use it. name is that of its parameter in the graphs of steps. The
	// tensor is used up.
	Put(name string, t *tensors.Tensor) (compute.Buffer, error)
	// Fetch copies a value to the host.
	Fetch(b compute.Buffer) (*tensors.Tensor, error)
	// FetchInto is Fetch into memory that is there, of exactly the value's bytes: row after row, in the host's byte
	// order.
	FetchInto(b compute.Buffer, memory []byte) error
	// Parts are those of a value that lies cut over several processes which this one is to save: each part of the value is
	// given in one process, so a process may have none. FetchInto copies the buffer of one, and waits for nobody. cut is
	// false for all other values, of which each process can fetch the whole by itself.
	Parts(b compute.Buffer) (parts []Part, cut bool)
	// Free gives up values; nil ones are passed over.
	Free(buffers ...compute.Buffer) error
	// Batch gives a batch the form in which steps can take it: a strategy of several devices divides it.
	Batch(b data.Batch) (data.Batch, error)
	// Compile builds and compiles the graph of a step.
	Compile(Step) (Program, error)
}

// Step is a graph to be compiled.
type Step struct {
	Name string
	// Batch are the names and shapes of a batch's fields.
	Batch []Input
	// Block, if it is more than 1, asks for a program that makes up to so many steps at once.
	Block int
	// Build builds the graph from the nodes of the batch's fields. It may panic, as graph functions do.
	Build func(g *graph.Graph, batch []*graph.Node) Built
}

// Built is what [Step].Build gives.
type Built struct {
	// State are the state's values.
	State []Slot
	// Outputs are what else the graph computes.
	Outputs []*graph.Node
	// Read are the places of outputs that the host alone will look at: see [xla.Built].
	Read []int
	// Alone asks for a step that is not made in blocks.
	Alone bool
}

// Slot is one value of the state in a graph: its parameter, and its new value, nil if the step leaves it alone.
type Slot struct {
	Parameter, New *graph.Node
	// Data marks a part of a data set: a step takes some of its rows, so its size says nothing of how long a step takes.
	Data bool
}

// Graph builds the step's graph, for a strategy: a parameter for each field of the batch, and what Build makes of them.
// It panics where a value of the state would change its shape.
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

// batchPrefix begins the names of the graph's parameters that are fields of the batch.
const batchPrefix = "batch:"

// Program is a compiled step. It may be used by any number of goroutines; the values that a run changes are not to be
// used by others meanwhile.
type Program interface {
	// Block is how many steps the program makes at once, at most: 1, or what [Step] asked for. Which of the two is a
	// matter of the graph's structure and sizes, not of a clock, so it is the same each time.
	Block() int
	// Start makes a step for each batch, at most Block, one after the other; their fields are in the order of
	// [Step].Batch. It may return while they go on. State and changed run parallel to [Built].State; changed is nil
	// where the steps leave a value alone, and elsewhere replaces the old value, which is used up. The outputs are
	// stacked on a new first axis of length Block if that is more than 1.
	//
	// After an error the whole state is as it was, unless the error wraps [ErrStateLost]. Later failures are errors of
	// running.Wait, which is to be called for each run; they wrap ErrStateLost if the run was to change the state. A nil
	// running is a run that is over.
	Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running Running, err error)
	// Rebuilds tells whether Start calls [Step].Build.
	Rebuilds() bool
	// StableHLO is the program as the plugin was given it.
	StableHLO() string
	// CompileTime is how long the plugin took to compile it.
	CompileTime() time.Duration
	// Cost and Memory are what a run takes, as it can be known beforehand: see [xla.Program.Cost] and
	// [xla.Program.Memory]. [xla.ErrUnimplemented] where steps are not compiled as a whole.
	Cost() (xla.Cost, error)
	Memory() (xla.Memory, error)
	// Compiled is the step as a program of the runtime's, for what else it tells; nil where steps are not compiled as a
	// whole. It stays the strategy's: it is neither to be run nor closed.
	Compiled() *xla.Program
	Close() error
}

// Running is a run of a program that may go on.
type Running interface {
	// Wait waits for its end and gives its error. A second Wait gives the same.
	Wait() error
	// Over tells whether it has ended, without waiting: tests ask it to see which runs overlap.
	Over() bool
}

// names are the strategies that [Parse] knows.
var names = []string{"jit", "jit_donate", "data_parallel", "data_parallel_donate", "eager"}

// Parse gives the strategy of a name, as it stands in a flag; "-" is as good as "_". "jit_donate" and
// "data_parallel_donate" are other names of "jit" and "data_parallel": lazo itself decides when a step writes over the
// old state.
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
