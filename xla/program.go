package xla

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Program is a compiled graph. Goroutines may run it concurrently; other uses of a buffer while a run replaces it
// ([Built].InPlace) are [ErrBusy].
type Program struct {
	name  string
	place Placement
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// Those of this process.
	devices int
	across  *across // nil for one process
	mode    runMode
	// 1, 2, … up to the block's size.
	counts []int32
	lists  sync.Pool // *lists, of blocks
	uses   gate.Gate // runs read, Close closes

	counting sync.Mutex // guards fromHLO
	fromHLO  *Cost
}

type lists struct {
	host   []any
	inputs []compute.Buffer
}

// Built is the result of a build function. Integers are indices of inputs or outputs.
type Built struct {
	Outputs []*graph.Node
	// InPlace maps outputs to the inputs of the same shape that they replace.
	InPlace map[int]int
	// Host lists inputs from the host's memory.
	Host []int
	// Read lists outputs that only the host reads, such as the loss. They may be values that no program takes: see
	// [OnHost].
	Read []int
	// Block asks for this many runs at once: see [Program.Block].
	Block int
	// Scan, with a Length, runs the graph on its own results, as in text generation. It excludes Block.
	Scan Scan
}

// Scan repeats a graph Length times. Outputs that are not carried are stacked on a new first axis.
type Scan struct {
	Length int
	// Carry maps outputs to the inputs of the same shape that they become next. Their last values are outputs.
	Carry map[int]int
	// Each lists inputs that are stacked on a new first axis, one value per time.
	Each []int
}

// ErrInputsLost reports that a failed run lost inputs that it replaces.
var ErrInputsLost = errors.New("the inputs that the program would have overwritten are lost")

// Compile builds a graph and compiles it for the first device. The error of a panic in build names the caller's line.
// It takes no context, because a plugin's compilation cannot be ended: see [CompileTimeout] for described machines.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	return r.CompileOver(Placement{}, name, build)
}

// CompileOver is [Runtime.Compile] for a mesh. The graph has whole arrays; XLA shards the work. Inputs and outputs are
// lists of parts, device after device. Over several processes ([Across]) each process handles its own parts of a mesh
// of all devices ([Runtime.Local]).
func (r *Runtime) CompileOver(place Placement, name string, build func(g *graph.Graph) Built) (*Program, error) {
	if r.closed.Load() {
		return nil, during(errClosed, "compile %s", name)
	}
	if err := place.Mesh.check(r.NumDevices()); err != nil {
		return nil, during(err, "compile %s", name)
	}
	if n := place.Mesh.Devices(); r.Job() != nil && n > 1 && n != r.NumDevices() {
		return nil, fmt.Errorf("xla: compile %s: the mesh has %d devices: across %d processes expected all %d, or 1 for a program that each runs alone",
			name, n, r.Job().Size(), r.NumDevices())
	}
	p := &Program{name: name, place: place, devices: place.Mesh.Devices()}
	c := &capture{Runtime: r, program: p}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		p.built = build(g)
		if err := p.compile(c, g); err != nil {
			panic(err)
		}
	})
	if err != nil {
		return nil, during(err, "compile %s", name)
	}
	return p, nil
}

func (p *Program) compile(c *capture, g *graph.Graph) error {
	_, ours := c.Runtime.Backend.(machine)
	if !ours && p.built.Scan.Length != 0 {
		return fmt.Errorf("%w: %v runs no scan", ErrUnimplemented, c.plugin)
	}
	start := time.Now()
	if err := g.Compile(p.built.Outputs...); err != nil || ours {
		return err
	}
	p.block, p.runs, p.took = 1, &plain{on: c.Runtime, exec: g.Executable(), built: p.built}, time.Since(start)
	return nil
}

// Block returns the most runs that the program makes at once. It is 1 for convolutions on the CPU, for graphs without
// InPlace and Host, and for backends other than XLA.
//
// A block's inputs from the host and its outputs are stacked on a new first axis of this length.
func (p *Program) Block() int { return p.block }

// CompileTime returns the plugin's compile time: 0 before a described machine compiles, the original for a cached
// report.
func (p *Program) CompileTime() time.Duration {
	if d, ok := p.runs.(*describedProgram); ok {
		return d.took()
	}
	return p.took
}

// Placement returns the argument of [Runtime.CompileOver].
func (p *Program) Placement() Placement { return p.place }

// StableHLO returns the program's text, "" without XLA.
func (p *Program) StableHLO() string { return p.text }

// Run runs the program once and waits. inputs has a buffer per input, nil for those from the host. host has slices of
// elements, in the order of [Built].Host. Both are ordered device after device. The run puts the new buffers of
// [Built].InPlace into inputs and uses up the old ones. The caller owns the outputs.
//
// A failed run leaves the inputs valid, unless the error wraps [ErrInputsLost]. To ensure this, the first run, which
// fails if memory is short, copies up to 256 MiB per device.
func (p *Program) Run(inputs []compute.Buffer, host []any) (outputs []compute.Buffer, err error) {
	outputs, _, err = p.do(inputs, host, 1, waitForEnd, nil)
	return outputs, err
}

// Start makes n runs, at most [Program.Block], and may return before they end. Outputs and replaced inputs are usable
// at once. Later errors come from [Running.Wait] and from reading an output.
//
// A block ignores stacked inputs after the first n; stacked outputs are zero there. Results are bit-identical for any
// division into blocks. A block's slices must stay unchanged until the run ends, those of a single run until Start
// returns. On the CPU only blocks on one device outlast Start.
//
// alike is compared between the processes of a job before the run.
func (p *Program) Start(inputs []compute.Buffer, host []any, n int, alike ...Alike) (outputs []compute.Buffer, running *Running, err error) {
	mode := p.mode
	if mode == goOnCopied && p.block > 1 {
		mode = goOnShared
	}
	return p.do(inputs, host, n, mode, alike)
}

func (p *Program) do(inputs []compute.Buffer, host []any, n int, mode runMode, alike []Alike) (outputs []compute.Buffer, running *Running, err error) {
	if p.uses.Read(context.Background()) != nil {
		return nil, nil, during(errProgramClosed, "run %s", p.name)
	}
	defer p.uses.DoneReading()
	if n < 1 || n > p.block {
		return nil, nil, fmt.Errorf("xla: run %s: %d runs at once: the program makes up to %d", p.name, n, p.block)
	}
	devices := p.devices
	if p.block > 1 {
		pooled, _ := p.lists.Get().(*lists)
		if pooled == nil {
			pooled = new(lists)
		}
		defer func(callers []compute.Buffer) {
			if err == nil {
				p.copyBack(callers, inputs, devices)
			}
			clear(inputs)
			clear(host)
			p.lists.Put(pooled)
		}(inputs)
		inputs, host = p.counted(pooled, inputs, host, n, devices)
	}
	if len(host) != devices*len(p.built.Host) {
		return nil, nil, fmt.Errorf("xla: run %s: expected %d inputs from the host, got %d", p.name, devices*len(p.built.Host), len(host))
	}
	if p.across != nil {
		leave, err := p.across.enter(p, n, alike)
		if err != nil {
			return nil, nil, during(err, "run %s", p.name)
		}
		defer leave()
	}
	if outputs, running, err = p.runs.run(inputs, host, mode); err != nil {
		return nil, nil, during(p.explained(err), "run %s", p.name)
	}
	if running != nil {
		running.program = p.name
	}
	return outputs, running, nil
}

func (p *Program) counted(l *lists, inputs []compute.Buffer, host []any, n, devices int) ([]compute.Buffer, []any) {
	l.inputs, l.host = l.inputs[:0], l.host[:0]
	for d := range devices {
		l.inputs = append(append(l.inputs, part(inputs, d, devices)...), nil)
		l.host = append(append(l.host, part(host, d, devices)...), p.counts[n-1:n])
	}
	return l.inputs, l.host
}

func (p *Program) copyBack(callers, inputs []compute.Buffer, devices int) {
	for d := range devices {
		copy(part(callers, d, devices), part(inputs, d, devices))
	}
}

func part[T any](list []T, d, devices int) []T {
	n := len(list) / devices
	return list[d*n : (d+1)*n]
}

// goOnBytes is the least size of a block's batches for which Start returns early on the CPU.
const goOnBytes = 32 << 10

// Close waits for runs and frees the program. Later use is [ErrClosed].
func (p *Program) Close() error {
	if p == nil || p.runs == nil {
		return nil
	}
	return gate.Once(p.uses.Close(p.runs.close))
}
