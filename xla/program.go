package xla

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
	gomlxxla "github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Program is a compiled graph. Close frees it.
type Program struct {
	name     string
	on       *Runtime
	exec     backends.Executable
	compiled time.Duration
	text     string
	// donated marks the inputs whose memory outputs are written to; proven, that the program ran to its end once.
	donated []bool
	proven  bool
}

// Built is what came of building a graph: its outputs, and which of them may be written over an input that is then
// used up. InPlace maps the place of an output to that of an input of the same shape.
type Built struct {
	Outputs []*graph.Node
	InPlace map[int]int
}

// ErrInputsLost: a program that writes over its inputs failed, and they are gone.
var ErrInputsLost = errors.New("the inputs that the program was to write over are lost")

// Compile builds a graph and compiles it. What the build function panics with, as GoMLX's graph functions do, comes
// back as an error that names the line of the caller's code.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	c := &capture{Backend: r}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		built := build(g)
		c.inPlace = built.InPlace
		g.Compile(built.Outputs...)
	})
	if err != nil {
		return nil, fmt.Errorf("xla: compile %s: %w", name, WrapError(err))
	}
	return &Program{name: name, on: r, exec: c.exec, compiled: c.took, text: c.text, donated: c.donated}, nil
}

// CompileTime is how long the plugin took to compile the program, without the building of its graph.
func (p *Program) CompileTime() time.Duration { return p.compiled }

// StableHLO is the program as it was given to the plugin; "" for a backend that is not XLA.
func (p *Program) StableHLO() string { return p.text }

// Run runs the program on the first device and waits for it. The outputs become the caller's. Inputs that are written
// over ([Built].InPlace) are used up by a run that succeeds, and must not be freed; all others stay the caller's.
//
// If a run fails, all inputs are still good, with one exception: when a program that has run before fails, what it was
// to write over may be lost; the error then wraps [ErrInputsLost]. The first run writes over nothing and copies
// instead, because a program that does not fit into memory fails in its first run: what it needs never changes.
func (p *Program) Run(inputs []backends.Buffer) (outputs []backends.Buffer, err error) {
	if p.exec == nil {
		return nil, fmt.Errorf("xla: run %s: the program is closed", p.name)
	}
	var donate []bool
	if p.proven {
		donate = p.donated
	}
	if caught := graphs.Catch(func() { outputs, err = p.exec.Execute(inputs, donate, 0) }); caught != nil {
		err = caught
	}
	if err != nil {
		err = WrapError(err)
		if donate != nil {
			err = fmt.Errorf("%w: %w", ErrInputsLost, err)
		}
		return nil, fmt.Errorf("xla: run %s: %w", p.name, err)
	}
	if !p.proven {
		p.proven = true
		for i, used := range p.donated {
			if !used {
				continue
			}
			if err := p.on.BufferFinalize(inputs[i]); err != nil {
				return nil, fmt.Errorf("xla: run %s: free input %d: %w", p.name, i, WrapError(err))
			}
		}
	}
	return outputs, nil
}

// Close frees the compiled program; a second Close does nothing.
func (p *Program) Close() error {
	if p == nil || p.exec == nil {
		return nil
	}
	exec := p.exec
	p.exec = nil
	return graphs.Catch(exec.Finalize)
}

// capture is a backend that hands out what a graph compiled to: GoMLX's graph keeps its executable to itself, and
// runs it only through tensors.
type capture struct {
	backends.Backend
	exec    backends.Executable
	took    time.Duration
	text    string
	inPlace map[int]int
	donated []bool
}

func (c *capture) Builder(name string) backends.Builder {
	return &capturingBuilder{Builder: c.Backend.Builder(name), to: c}
}

type capturingBuilder struct {
	backends.Builder
	to *capture
}

func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	main, err := mainFunction(b.Builder)
	if err != nil {
		return nil, err
	}
	if main != nil {
		b.to.donated = alias(main, b.to.inPlace)
	}
	start := time.Now()
	exec, err := b.Builder.Compile(outputs, shardings)
	if err == nil && exec == nil {
		err = errors.New("the backend compiled to nothing")
	}
	b.to.exec, b.to.took = exec, time.Since(start)
	if main != nil && err == nil {
		var text []byte
		text, err = main.Builder.Build()
		b.to.text = string(text)
	}
	return exec, err
}

// alias marks the inputs that outputs are written over, as XLA reads it.
func alias(main *stablehlo.Function, inPlace map[int]int) (donated []bool) {
	if len(inPlace) == 0 {
		return nil
	}
	donated = make([]bool, len(main.Inputs))
	for output, input := range inPlace {
		if main.Inputs[input].Attributes == nil {
			main.Inputs[input].Attributes = map[string]any{}
		}
		main.Inputs[input].Attributes["tf.aliasing_output"] = int32(output)
		donated[input] = true
	}
	return donated
}

// mainFunction is the program that GoMLX's XLA builder has built; nil for another builder. GoMLX has no way to reach
// it, so the field is read past the language's fence; a version of GoMLX without it gives an error here, not a wrong
// program. It goes when lazo has a builder of its own.
func mainFunction(b backends.Builder) (*stablehlo.Function, error) {
	builder, ok := b.(*gomlxxla.Builder)
	if !ok {
		return nil, nil
	}
	field := reflect.ValueOf(builder).Elem().FieldByName("fn")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*stablehlo.Function]() || field.IsNil() {
		return nil, errors.New("xla: this version of GoMLX keeps its program elsewhere than v0.26.0")
	}
	return (*stablehlo.Function)(field.UnsafePointer()), nil
}
