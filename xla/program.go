package xla

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Program is a compiled graph. Close frees it.
type Program struct {
	name     string
	exec     backends.Executable
	compiled time.Duration
}

// Compile builds a graph and compiles it. The build function returns the graph's outputs; what it panics with, as
// GoMLX's graph functions do, comes back as an error that names the line of the caller's code.
func (r *Runtime) Compile(name string, build func(g *graph.Graph) []*graph.Node) (*Program, error) {
	c := &capture{Backend: r}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		g.Compile(build(g)...)
	})
	if err != nil {
		return nil, fmt.Errorf("xla: compile %s: %w", name, WrapError(err))
	}
	return &Program{name: name, exec: c.exec, compiled: c.took}, nil
}

// Inputs are the names and shapes of the graph's parameters, in the order in which they were made.
func (p *Program) Inputs() (names []string, shapes []shapes.Shape) { return p.exec.Inputs() }

// Outputs are the shapes of the outputs.
func (p *Program) Outputs() []shapes.Shape { return p.exec.Outputs() }

// CompileTime is how long the plugin took to compile the program, without the building of its graph.
func (p *Program) CompileTime() time.Duration { return p.compiled }

// Run runs the program on the first device and waits for it. The inputs stay the caller's and stay valid, also when
// it fails; the outputs become the caller's.
func (p *Program) Run(inputs []backends.Buffer) (outputs []backends.Buffer, err error) {
	if p.exec == nil {
		return nil, fmt.Errorf("xla: run %s: the program is closed", p.name)
	}
	if caught := graphs.Catch(func() { outputs, err = p.exec.Execute(inputs, nil, 0) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, fmt.Errorf("xla: run %s: %w", p.name, WrapError(err))
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
	exec backends.Executable
	took time.Duration
}

func (c *capture) Builder(name string) backends.Builder {
	return &capturingBuilder{Builder: c.Backend.Builder(name), to: c}
}

type capturingBuilder struct {
	backends.Builder
	to *capture
}

func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	start := time.Now()
	exec, err := b.Builder.Compile(outputs, shardings)
	if err == nil && exec == nil {
		err = errors.New("the backend compiled to nothing")
	}
	b.to.exec, b.to.took = exec, time.Since(start)
	return exec, err
}
