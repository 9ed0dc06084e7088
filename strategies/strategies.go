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

// ErrStateLost reports that a step failed on the device after it had begun to overwrite the state. The state must be
// recreated or restored. The first run of a program never returns it, so an out-of-memory error of a new program does
// not lose the state.
var ErrStateLost = errors.New("the state is lost")

// Part is a block of a sharded value: its start in the whole and its shape.
type Part struct {
	Start  []int
	Shape  shapes.Shape
	Buffer compute.Buffer
}

// Strategy runs steps.
type Strategy interface {
	fmt.Stringer
	// Runtime returns the strategy's runtime.
	Runtime() *xla.Runtime
	// NumDevices returns how many devices run the steps.
	NumDevices() int
	// Put moves a value of the state to the devices. name is its graph parameter. The tensor is used up.
	Put(name string, t *tensors.Tensor) (compute.Buffer, error)
	// Fetch copies a value to the host.
	Fetch(b compute.Buffer) (*tensors.Tensor, error)
	// FetchInto is Fetch into memory of exactly the value's bytes, row-major in host byte order.
	FetchInto(b compute.Buffer, memory []byte) error
	// Parts returns the parts of a value sharded over several processes that this process saves. Each part belongs to
	// one process, so a process may have none. FetchInto copies a part's buffer without waiting for others. cut is
	// false for all other values; each process can fetch those as a whole.
	Parts(b compute.Buffer) (parts []Part, cut bool)
	// Free frees values and ignores nil.
	Free(buffers ...compute.Buffer) error
	// Batch returns a batch in the form that steps take, such as padded or truncated.
	Batch(b data.Batch) (data.Batch, error)
	// Compile builds and compiles a step's graph.
	Compile(Step) (Program, error)
}

// Step is a graph to compile.
type Step struct {
	Name string
	// Batch has the names and shapes of the batch's fields.
	Batch []Input
	// Block above 1 requests a program that runs up to that many steps at once.
	Block int
	// Build builds the graph from the nodes of the batch's fields. It may panic, as graph functions do.
	Build func(g *graph.Graph, batch []*graph.Node) Built
}

// Built is the result of [Step].Build.
type Built struct {
	// State has the state's values.
	State []Slot
	// Outputs are the other results.
	Outputs []*graph.Node
	// Read are indices of outputs that only the host reads: see [xla.Built].
	Read []int
	// Alone excludes the step from blocks.
	Alone bool
}

// Slot is a state value in a graph: its parameter and its new value, nil if unchanged.
type Slot struct {
	Parameter, New *graph.Node
	// Data marks a field of a resident data set, whose size does not affect the cost of a step.
	Data bool
}

// Graph builds the step's graph, with a parameter for each field of the batch. It panics if a state value would change
// its shape.
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

// batchPrefix begins the names of the batch's graph parameters.
const batchPrefix = "batch:"

// Program is a compiled step. It is safe for concurrent use, but values that a run changes must not be used by others
// meanwhile.
type Program interface {
	// Block returns the maximum number of steps per run: 1, or that of [Step]. It depends only on the graph's structure
	// and sizes, so it is deterministic.
	Block() int
	// Start runs a step for each batch in order, at most Block; fields are in the order of [Step].Batch. It may return
	// before they end. state and changed have the order of [Built].State. changed is nil for unchanged values; others
	// replace the old values, which are used up. Outputs are stacked on a new first axis of length Block if that is
	// above 1.
	//
	// After an error the state is unchanged, unless the error wraps [ErrStateLost]. Later failures come from
	// running.Wait, which must be called for each run; they wrap ErrStateLost if the run changes the state. running is
	// nil if the run has ended.
	Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running Running, err error)
	// Rebuilds reports whether Start calls [Step].Build.
	Rebuilds() bool
	// StableHLO returns the program text given to the plugin.
	StableHLO() string
	// CompileTime returns the plugin's compilation time.
	CompileTime() time.Duration
	// Cost and Memory estimate the needs of a run: see [xla.Program.Cost] and [xla.Program.Memory]. They return
	// [xla.ErrUnimplemented] if steps are not compiled as a whole.
	Cost() (xla.Cost, error)
	Memory() (xla.Memory, error)
	// Compiled returns the runtime's program, or nil if steps are not compiled as a whole. It belongs to the strategy:
	// do not run or close it.
	Compiled() *xla.Program
	Close() error
}

// Running is a started run of a program.
type Running interface {
	// Wait waits for the end of the run and returns its error. It may be called again.
	Wait() error
	// Over reports whether the run has ended, without waiting; tests check overlaps by it.
	Over() bool
}

// names are the strategies of [Parse].
var names = []string{"jit", "jit_donate", "data_parallel", "data_parallel_donate", "eager"}

// Parse returns the strategy with a flag's name: "jit", "data_parallel" or "eager"; "-" equals "_". "jit_donate" and
// "data_parallel_donate" are synonyms of the first two, because lazo itself decides when a step overwrites the state.
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
