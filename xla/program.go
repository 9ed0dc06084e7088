package xla

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/hlo"
)

// Program is a compiled graph that is run again and again on values that stay on its devices. Close frees it.
type Program struct {
	name  string
	place Placement
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// way is how a run is started.
	way way
	// Those of a block, which are made once. counts are the numbers from 1 to the size of a block.
	counts []int32
	host   []any
	inputs []backends.Buffer
}

// Built is what came of building a graph: its outputs, and what the inputs are, by their places.
type Built struct {
	Outputs []*graph.Node
	// InPlace maps the place of an output to that of an input of the same shape, which it replaces.
	InPlace map[int]int
	// Host are the inputs that each run is given from the host's memory.
	Host []int
	// Block, if it is more than 1, asks for a program that makes up to so many runs at once: see [Program.Block].
	Block int
}

// ErrInputsLost: a program that writes over its inputs failed, and they are gone.
var ErrInputsLost = errors.New("the inputs that the program was to write over are lost")

// Compile builds a graph and compiles it for the first device. What the build function panics with, as GoMLX's graph
// functions do, comes back as an error that names the line of the caller's code.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	return r.CompileOver(Placement{}, name, build)
}

// CompileOver is Compile for the devices of a mesh. The graph is one of whole arrays: XLA divides the work by how the inputs
// are divided, and has the devices exchange what they need. What the program is given and gives is a list of each device's
// part, one device after the other.
func (r *Runtime) CompileOver(place Placement, name string, build func(g *graph.Graph) Built) (*Program, error) {
	if r.closed.Load() {
		return nil, during(errClosed, "compile %s", name)
	}
	if err := place.Mesh.check(r.NumDevices()); err != nil {
		return nil, during(err, "compile %s", name)
	}
	p := &Program{name: name, place: place}
	c := &capture{r, p}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		p.built = build(g)
		g.Compile(p.built.Outputs...)
	})
	if err != nil {
		return nil, during(err, "compile %s", name)
	}
	return p, nil
}

// Block is how many runs of the graph the program makes at once, at most: 1, or what [Built] asked for. A graph with a
// convolution runs one by one on the CPU, where XLA's loops make it 9 to 25 times slower; so does one with nothing in
// place and nothing from the host, and any graph of a backend that is not XLA.
//
// A block's inputs from the host and its outputs are stacked on a new first axis of this length.
func (p *Program) Block() int { return p.block }

// CompileTime is how long the plugin took to compile the program, without the building of its graph.
func (p *Program) CompileTime() time.Duration { return p.took }

// StableHLO is the program as it was given to the plugin; "" for a backend that is not XLA.
func (p *Program) StableHLO() string { return p.text }

// Run makes one run of the program and waits for it. inputs has a buffer for each input, nil for those of the host, which are
// given as slices of their elements, in the order of [Built].Host; both for one device after the other. After a run, inputs has the outputs that replace inputs
// ([Built].InPlace), in the place of the old ones, which are used up; the other outputs become the caller's.
//
// If a run fails, all inputs are still good, with one exception: when a program that has run before fails, what it was
// to write over may be lost; the error then wraps [ErrInputsLost]. The first run writes over nothing and copies
// instead, because a program that does not fit into memory fails in its first run: what it needs never changes. Only what
// is larger than 256 MiB on a device is written over at once: a copy of it would be the first thing that does not fit.
func (p *Program) Run(inputs []backends.Buffer, host []any) (outputs []backends.Buffer, err error) {
	outputs, _, err = p.do(inputs, host, 1, toItsEnd)
	return outputs, err
}

// Start makes n runs, at most [Program.Block], and may return while they go on: outputs and what replaces inputs can be used
// at once, in other runs too, and the device has work while the host prepares the next. What goes wrong after Start is
// told by [Running.Wait], and by reading an output.
//
// In a block, what lies behind the first n of stacked inputs is not looked at, and stacked outputs are zero there. The runs
// compute the same bits however they are divided over blocks. The host's slices of a block must stay as they are until
// the run is over; those of a single run are the caller's again. That is why a single run on the CPU is over when Start
// returns: there the copy of a batch costs more than a host gains that shares its cores with the program. On several
// devices of the CPU, each run is over: runs that wait for each other can fill all its threads.
func (p *Program) Start(inputs []backends.Buffer, host []any, n int) (outputs []backends.Buffer, running *Running, err error) {
	way := p.way
	if way == onCopies && p.block > 1 {
		way = onShared
	}
	return p.do(inputs, host, n, way)
}

func (p *Program) do(inputs []backends.Buffer, host []any, n int, how way) (outputs []backends.Buffer, running *Running, err error) {
	if p.runs == nil {
		return nil, nil, during(errProgramClosed, "run %s", p.name)
	}
	if n < 1 || n > p.block {
		return nil, nil, fmt.Errorf("xla: run %s: %d runs at once: the program makes up to %d", p.name, n, p.block)
	}
	devices := p.place.Mesh.Devices()
	if p.block > 1 {
		defer func(given []backends.Buffer) {
			if err == nil {
				p.take(given, inputs, devices)
			}
			clear(inputs)
			clear(host)
		}(inputs)
		inputs, host = p.counted(inputs, host, n, devices)
	}
	if len(host) != devices*len(p.built.Host) {
		return nil, nil, fmt.Errorf("xla: run %s: expected %d inputs from the host, got %d", p.name, devices*len(p.built.Host), len(host))
	}
	if outputs, running, err = p.runs.run(inputs, host, how); err != nil {
		return nil, nil, during(p.explained(err), "run %s", p.name)
	}
	if running != nil {
		running.program = p.name
	}
	return outputs, running, nil
}

// counted adds the last input of a block, on each device: how many runs it is to make. No buffer stands for it.
func (p *Program) counted(inputs []backends.Buffer, host []any, n, devices int) ([]backends.Buffer, []any) {
	p.inputs, p.host = p.inputs[:0], p.host[:0]
	for d := range devices {
		p.inputs = append(append(p.inputs, part(inputs, d, devices)...), nil)
		p.host = append(append(p.host, part(host, d, devices)...), p.counts[n-1:n])
	}
	return p.inputs, p.host
}

// take copies what a block made of its inputs to where the caller has them.
func (p *Program) take(given, inputs []backends.Buffer, devices int) {
	for d := range devices {
		copy(part(given, d, devices), part(inputs, d, devices))
	}
}

// part is what a list has for one of several devices.
func part[T any](list []T, d, devices int) []T {
	n := len(list) / devices
	return list[d*n : (d+1)*n]
}

// handedOver is from how many bytes of batches in a block on a program is left to another thread of the CPU: with less, the
// host has less to do meanwhile than it takes to wake that thread.
const handedOver = 32 << 10

// Close frees the compiled program; a second Close does nothing.
func (p *Program) Close() error {
	if p == nil || p.runs == nil {
		return nil
	}
	runs := p.runs
	p.runs = nil
	return runs.close()
}

// capture is a backend that takes what a graph compiles to: GoMLX's graph keeps its executable to itself, and runs it
// only through tensors.
type capture struct {
	*Runtime
	program *Program
}

func (c *capture) Builder(name string) backends.Builder {
	if on, ok := c.Runtime.Backend.(*client); ok && !c.closed.Load() {
		b := &capturingModule{to: c}
		b.Builder = hlo.New(name, func(m *hlo.Module) (backends.Executable, error) { return c.takeModule(on, m) }).ForCPU(on.plugin.Kind == CPU)
		if mesh := c.program.place.Mesh; len(mesh.Axes) > 0 {
			if err := b.DistributedAutoSharding(mesh.gomlx()); err != nil {
				panic(err) // GoMLX asks for no error here; Compile recovers it
			}
		}
		return b
	}
	if c.program.place.Mesh.Devices() > 1 {
		panic(fmt.Errorf("%v runs on one device", c.plugin))
	}
	return &capturingBuilder{Builder: c.Runtime.Builder(name), to: c}
}

func (c *capture) takeModule(on *client, m *hlo.Module) (backends.Executable, error) {
	p := c.program
	p.block = 1
	if p.built.Block > 1 && len(p.built.InPlace)+len(p.built.Host) > 0 && !(on.plugin.Kind == CPU && m.Ops[backends.OpTypeConvGeneral] > 0) {
		steps, err := m.Steps(p.built.Block, p.built.Host...)
		if err != nil {
			return nil, err
		}
		p.block, p.counts = p.built.Block, make([]int32, p.built.Block)
		for i := range p.counts {
			p.counts[i] = int32(i + 1)
		}
		p.built.Host = append(slices.Clone(p.built.Host), len(m.Parameters))
		m = steps
	}
	e, err := on.compileFor(m, false)
	if err != nil {
		return nil, err
	}
	runs, err := e.newCall(p.built, p.place)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	switch {
	case on.plugin.Kind != CPU:
		p.way = onCopies
	case p.block > 1 && p.place.Mesh.Devices() == 1 && runs.hostBytes() > handedOver:
		p.way = onShared
	}
	p.runs, p.took, p.text = runs, e.took, m.Text()
	return e, nil
}

type capturingModule struct {
	*hlo.Builder
	to     *capture
	splits []Split // of the parameters
}

// Parameter places a parameter as the program's placement says.
func (b *capturingModule) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Op, error) {
	if sharding == nil && len(b.to.program.place.Mesh.Axes) > 0 {
		split := b.to.program.place.split(name, shape)
		b.splits = append(b.splits, split)
		sharding = split.gomlx(shape.Rank())
	}
	return b.Builder.Parameter(name, shape, sharding)
}

func (b *capturingModule) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	p := b.to.program
	for output, input := range p.built.InPlace {
		if err := b.InPlace(output, input); err != nil {
			return nil, err
		}
	}
	if len(p.place.Mesh.Axes) > 0 {
		shardings = make([]*backends.ShardingSpec, len(outputs))
		for i, o := range outputs {
			shape, err := b.OpShape(o)
			if err != nil {
				return nil, err
			}
			var split Split
			if input, replaces := p.built.InPlace[i]; replaces {
				split = b.splits[input]
			}
			shardings[i] = split.gomlx(shape.Rank())
		}
	}
	return b.Builder.Compile(outputs, shardings)
}

type capturingBuilder struct {
	backends.Builder
	to *capture
}

func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	start := time.Now()
	exec, err := b.Builder.Compile(outputs, shardings)
	if err != nil {
		return nil, err
	}
	p := b.to.program
	p.block = 1
	p.runs, p.took = &plain{b.to.Runtime, exec, p.built}, time.Since(start)
	return exec, nil
}
