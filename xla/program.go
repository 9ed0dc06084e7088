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
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Program is a compiled graph that is run again and again on values that stay on the first device. Close frees it.
type Program struct {
	name  string
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// Those of a block, which are made once.
	count  []int32
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

// runner is how a program runs: on PJRT, or on another backend.
type runner interface {
	run(inputs []backends.Buffer, host []any) (outputs []backends.Buffer, err error)
	close() error
}

// Compile builds a graph and compiles it for the first device. What the build function panics with, as GoMLX's graph
// functions do, comes back as an error that names the line of the caller's code.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	p := &Program{name: name}
	c := &capture{r, p}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		p.built = build(g)
		g.Compile(p.built.Outputs...)
	})
	if err != nil {
		return nil, fmt.Errorf("xla: compile %s: %w", name, WrapError(err))
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

// Run runs the program and waits for it. inputs has a buffer for each input, nil for those of the host, which are given as
// slices of their elements, in the order of [Built].Host. After a run, inputs has the outputs that replace inputs
// ([Built].InPlace), in the place of the old ones, which are used up; the other outputs become the caller's.
//
// If a run fails, all inputs are still good, with one exception: when a program that has run before fails, what it was
// to write over may be lost; the error then wraps [ErrInputsLost]. The first run writes over nothing and copies
// instead, because a program that does not fit into memory fails in its first run: what it needs never changes.
func (p *Program) Run(inputs []backends.Buffer, host []any) (outputs []backends.Buffer, err error) {
	if p.runs == nil {
		return nil, fmt.Errorf("xla: run %s: the program is closed", p.name)
	}
	if p.block > 1 {
		return nil, fmt.Errorf("xla: run %s: it makes up to %d runs at once: use RunBlock", p.name, p.block)
	}
	return p.run(inputs, host)
}

// RunBlock is Run for n runs at once, at most [Program.Block]. What lies behind the first n of stacked inputs is not looked
// at, and stacked outputs are zero there. The runs compute the same bits however they are divided over blocks.
func (p *Program) RunBlock(inputs []backends.Buffer, host []any, n int) (outputs []backends.Buffer, err error) {
	if p.runs == nil {
		return nil, fmt.Errorf("xla: run %s: the program is closed", p.name)
	}
	if p.block < 2 || n < 1 || n > p.block {
		return nil, fmt.Errorf("xla: run %s: %d runs at once: the program makes up to %d", p.name, n, p.block)
	}
	p.count[0] = int32(n)
	p.host = append(append(p.host[:0], host...), p.count)
	defer clear(p.host)
	// The count is the last input; no buffer stands for it.
	p.inputs = append(append(p.inputs[:0], inputs...), nil)
	defer clear(p.inputs)
	if outputs, err = p.run(p.inputs, p.host); err == nil {
		copy(inputs, p.inputs)
	}
	return outputs, err
}

func (p *Program) run(inputs []backends.Buffer, host []any) (outputs []backends.Buffer, err error) {
	if len(host) != len(p.built.Host) {
		return nil, fmt.Errorf("xla: run %s: expected %d inputs from the host, got %d", p.name, len(p.built.Host), len(host))
	}
	if outputs, err = p.runs.run(inputs, host); err != nil {
		return nil, fmt.Errorf("xla: run %s: %w", p.name, WrapError(err))
	}
	return outputs, nil
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

// call runs a program of PJRT: one call of C, whatever the number of its inputs.
type call struct {
	executable *executable
	call       *pjrt.Call
	set        []*pjrt.Buffer // what the call has as arguments
	shapes     []pjrt.Shape   // of the host inputs
	memory     [][]byte       // theirs, for the time of a run
	proven     bool           // it ran to its end once
}

func (e *executable) newCall(b Built) (*call, error) {
	c := &call{executable: e, set: make([]*pjrt.Buffer, len(e.module.Parameters)), memory: make([][]byte, len(b.Host))}
	options := pjrt.CallOptions{InPlace: b.InPlace}
	for _, i := range b.Host {
		s := fromGoMLX(e.module.Parameters[i].Shape)
		c.shapes = append(c.shapes, s)
		options.Host = append(options.Host, pjrt.HostInput{Argument: i, Shape: s})
	}
	var err error
	if c.call, err = e.pjrt.NewCall(options); err != nil {
		return nil, err
	}
	if err = c.call.KeepArguments(true); err != nil {
		return nil, errors.Join(err, c.call.Close())
	}
	return c, nil
}

func (c *call) run(inputs []backends.Buffer, host []any) ([]backends.Buffer, error) {
	if len(inputs) != len(c.set) {
		return nil, fmt.Errorf("expected %d inputs, got %d", len(c.set), len(inputs))
	}
	for i, input := range inputs {
		if input == nil {
			continue
		}
		b, err := bufferOf(input)
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		if c.set[i] != b {
			if err := c.call.Set(0, i, b); err != nil {
				return nil, err
			}
			c.set[i] = b
		}
	}
	defer clear(c.memory)
	for i, flat := range host {
		var err error
		if c.memory[i], err = memoryOf(flat, c.shapes[i]); err != nil {
			return nil, fmt.Errorf("input %d from the host: %w", i, err)
		}
	}
	made, err := c.call.Run(c.memory...)
	if err != nil {
		if errors.Is(err, pjrt.ErrArgumentsLost) {
			err = fmt.Errorf("%w: %w", ErrInputsLost, err)
		}
		return nil, err
	}
	if !c.proven {
		c.proven = true
		if err := c.call.KeepArguments(false); err != nil {
			return nil, err
		}
	}
	// A buffer that is replaced stays the same buffer, so the inputs are what they are to be.
	outputs := make([]backends.Buffer, len(made[0]))
	for i, b := range made[0] {
		outputs[i] = b
	}
	return outputs, nil
}

func (c *call) close() error { return errors.Join(c.call.Close(), c.executable.close()) }

// plain runs a program of another backend, which knows no inputs that are replaced in place.
type plain struct {
	on    *Runtime
	exec  backends.Executable
	built Built
}

func (p *plain) run(inputs []backends.Buffer, host []any) (rest []backends.Buffer, err error) {
	all := slices.Clone(inputs)
	_, shapes := p.exec.Inputs()
	if len(all) != len(shapes) {
		return nil, fmt.Errorf("expected %d inputs, got %d", len(shapes), len(all))
	}
	for i, place := range p.built.Host {
		if all[place], err = p.on.BufferFromFlatData(0, host[i], shapes[place]); err != nil {
			return nil, fmt.Errorf("input %d from the host: %w", i, err)
		}
		defer func() { err = errors.Join(err, p.on.BufferFinalize(all[place])) }()
	}
	var outputs []backends.Buffer
	if caught := graphs.Catch(func() { outputs, err = p.exec.Execute(all, nil, 0) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, err
	}
	for i, b := range outputs {
		place, replaces := p.built.InPlace[i]
		if !replaces {
			rest = append(rest, b)
			continue
		}
		if freeErr := p.on.BufferFinalize(inputs[place]); freeErr != nil {
			err = errors.Join(err, freeErr)
		}
		inputs[place] = b
	}
	return rest, err
}

func (p *plain) close() error { return graphs.Catch(p.exec.Finalize) }

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
		p.block, p.count = p.built.Block, []int32{0}
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
