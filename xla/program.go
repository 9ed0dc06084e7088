package xla

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/hlo"
)

// Program is a compiled graph that is run again and again on values that stay on the first device. Close frees it.
type Program struct {
	name  string
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// single is how a single run is started.
	single way
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
	if r.closed.Load() {
		return nil, during(errClosed, "compile %s", name)
	}
	p := &Program{name: name}
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
// given as slices of their elements, in the order of [Built].Host. After a run, inputs has the outputs that replace inputs
// ([Built].InPlace), in the place of the old ones, which are used up; the other outputs become the caller's.
//
// If a run fails, all inputs are still good, with one exception: when a program that has run before fails, what it was
// to write over may be lost; the error then wraps [ErrInputsLost]. The first run writes over nothing and copies
// instead, because a program that does not fit into memory fails in its first run: what it needs never changes.
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
// returns: there the copy of a batch costs more than a host gains that shares its cores with the program.
func (p *Program) Start(inputs []backends.Buffer, host []any, n int) (outputs []backends.Buffer, running *Running, err error) {
	way := p.single
	if p.block > 1 {
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
	given := inputs
	if p.block > 1 {
		// How many runs it is to make is the last input; no buffer stands for it.
		p.host, p.inputs = append(append(p.host[:0], host...), p.counts[n-1:n]), append(append(p.inputs[:0], inputs...), nil)
		host, inputs = p.host, p.inputs
		defer clear(host)
		defer clear(inputs)
	}
	if len(host) != len(p.built.Host) {
		return nil, nil, fmt.Errorf("xla: run %s: expected %d inputs from the host, got %d", p.name, len(p.built.Host), len(host))
	}
	if outputs, running, err = p.runs.run(inputs, host, how); err != nil {
		return nil, nil, during(p.explained(err), "run %s", p.name)
	}
	if running != nil {
		running.program = p.name
	}
	if p.block > 1 {
		copy(given, inputs)
	}
	return outputs, running, nil
}

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
		b.Builder = hlo.New(name, func(m *hlo.Module) (backends.Executable, error) { return c.takeModule(on, m) })
		return b
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
	runs, err := e.newCall(p.built)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	if on.plugin.Kind != CPU {
		p.single = onCopies
	}
	p.runs, p.took, p.text = runs, e.took, m.Text()
	return e, nil
}

type capturingModule struct {
	*hlo.Builder
	to *capture
}

func (b *capturingModule) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	for output, input := range b.to.program.built.InPlace {
		if err := b.InPlace(output, input); err != nil {
			return nil, err
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
