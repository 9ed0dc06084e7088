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

// Program is a compiled graph that is run again and again on values that stay on its devices. Close frees it. It may be
// used by any number of goroutines, and their runs go on at the same time; but a buffer that a run replaces
// ([Built].InPlace) is used by that run alone: any other use meanwhile is [ErrBusy]. Close waits for the runs, and
// later use is [ErrClosed].
type Program struct {
	name  string
	place Placement
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// devices are those of this process.
	devices int
	across  *across // nil where no other process has a part in the program
	// mode is how Start starts a run.
	mode runMode
	// counts are the numbers from 1 to the size of a block.
	counts []int32
	lists  sync.Pool // *lists, of blocks
	uses   gate.Gate // runs read, Close closes

	counting sync.Mutex // guards fromHLO
	fromHLO  *Cost      // once somebody asked for it
}

// lists are those of one run of a block.
type lists struct {
	host   []any
	inputs []compute.Buffer
}

// Built is what the function that builds a graph gives: the outputs, and what the inputs are, by their places.
type Built struct {
	Outputs []*graph.Node
	// InPlace maps the place of an output to that of an input of the same shape, which it replaces.
	InPlace map[int]int
	// Host are the inputs that each run is given from the host's memory.
	Host []int
	// Read are the places of outputs that the host alone will look at, as a step's loss. Of a run on one device that
	// is over when it is started they may come as values on the host, which no program takes: see [OnHost].
	Read []int
	// Block, if it is more than 1, asks for a program that makes up to so many runs at once: see [Program.Block].
	Block int
	// Scan, if it has a length, asks for a program that runs the graph so many times in one run, each time on the
	// results of the time before, as the generation of a text does. It goes without Block.
	Scan Scan
}

// Scan says how a graph is run on its own results. Outputs that are not carried are stacked on a new first axis.
type Scan struct {
	Length int
	// Carry maps the places of outputs to those of the inputs, of the same shape, that they become the next time. The
	// last of them are outputs of the program, of one time.
	Carry map[int]int
	// Each are the inputs with another value each time: the program takes them stacked on a new first axis.
	Each []int
}

// ErrInputsLost: a program that writes over its inputs failed, and they are gone.
var ErrInputsLost = errors.New("the inputs that the program was to write over are lost")

// Compile builds a graph and compiles it for the first device. A panic of the build function, as GoMLX's graph
// functions make them, comes back as an error that names the line of the caller's code.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	return r.CompileOver(Placement{}, name, build)
}

// CompileOver is Compile for the devices of a mesh. The graph is one of whole arrays: XLA divides the work by how the
// inputs are divided, and has the devices exchange what they need. Inputs and outputs of the program are lists of each
// device's part, one device after the other; of several processes ([Across]) each gives and gets its own
// ([Runtime.Local]). The mesh of a program across processes is all devices.
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

// compile has the graph compiled. A backend that is not XLA gives it back as the graph's own executable.
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

// Block is how many runs of the graph the program makes at once, at most: 1, or what [Built] asked for. A graph with a
// convolution runs one by one on the CPU, where XLA's loops make it 2 to 25 times slower; so does one with nothing in
// place and nothing from the host, and any graph of a backend that is not XLA.
//
// A block's inputs from the host and its outputs are stacked on a new first axis of this length.
func (p *Program) Block() int { return p.block }

// CompileTime is how long the plugin took to compile the program, without the building of its graph. For a described
// machine it is 0 until something has asked what the compiler makes of the program, and what the compiler took at the
// time where the report comes from the cache.
func (p *Program) CompileTime() time.Duration {
	if d, ok := p.runs.(*describedProgram); ok {
		return d.took()
	}
	return p.took
}

// Placement is what the program was compiled for: see [Runtime.CompileOver].
func (p *Program) Placement() Placement { return p.place }

// StableHLO is the program as it was given to the plugin; "" for a backend that is not XLA.
func (p *Program) StableHLO() string { return p.text }

// Run makes one run of the program and waits for it. inputs has a buffer for each input, nil for those of the host,
// which are given as slices of their elements, in the order of [Built].Host; both for one device after the other. After
// a run, inputs has the outputs that replace inputs ([Built].InPlace), in the place of the old ones, which are used up;
// the other outputs become the caller's.
//
// If a run fails, all inputs are still good, with one exception: when a program that has run before fails, what it was
// to write over may be lost; the error then wraps [ErrInputsLost]. The first run writes over nothing and copies
// instead, because a program that does not fit into memory fails in its first run: what it needs never changes. Only
// what is larger than 256 MiB on a device is written over at once: a copy of it would be the first thing that does not
// fit.
func (p *Program) Run(inputs []compute.Buffer, host []any) (outputs []compute.Buffer, err error) {
	outputs, _, err = p.do(inputs, host, 1, waitForEnd, nil)
	return outputs, err
}

// Start makes n runs, at most [Program.Block], and may return while they go on: outputs and what replaces inputs can be
// used at once, in other runs too, and the device has work while the host prepares the next. A failure after Start is
// the error of [Running.Wait], and of reading an output.
//
// In a block, what lies behind the first n of stacked inputs is not looked at, and stacked outputs are zero there. The
// runs compute the same bits however they are divided over blocks. The host's slices of a block must stay as they are
// until the run is over; those of a single run may be changed when Start returns. That is why a single run on the CPU
// is over when Start returns: there the copy of a batch costs more than is gained, because host and program share the
// cores. On several devices of the CPU, each run is over: runs that wait for each other can fill all its threads.
//
// Where the program runs across the processes of a job, they compare alike before the run, with the message by which
// they compare the program; elsewhere it is not looked at.
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

// counted adds the last input of a block, on each device: how many runs it is to make. No buffer stands for it.
func (p *Program) counted(l *lists, inputs []compute.Buffer, host []any, n, devices int) ([]compute.Buffer, []any) {
	l.inputs, l.host = l.inputs[:0], l.host[:0]
	for d := range devices {
		l.inputs = append(append(l.inputs, part(inputs, d, devices)...), nil)
		l.host = append(append(l.host, part(host, d, devices)...), p.counts[n-1:n])
	}
	return l.inputs, l.host
}

// copyBack copies the inputs as a block has left them into the caller's list.
func (p *Program) copyBack(callers, inputs []compute.Buffer, devices int) {
	for d := range devices {
		copy(part(callers, d, devices), part(inputs, d, devices))
	}
}

// part is the part of a list for one of several devices.
func part[T any](list []T, d, devices int) []T {
	n := len(list) / devices
	return list[d*n : (d+1)*n]
}

// goOnBytes is how many bytes of batches a block must have for Start on the CPU to return while it runs: with less, the
// host has less to do meanwhile than it takes to wake another thread.
const goOnBytes = 32 << 10

// Close waits for the runs that are being started or waited for, and frees the compiled program; a second Close does
// nothing.
func (p *Program) Close() error {
	if p == nil || p.runs == nil {
		return nil
	}
	return gate.Once(p.uses.Close(p.runs.close))
}
