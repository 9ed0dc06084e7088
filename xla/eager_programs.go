package xla

import (
	"errors"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// Eager runs each operation of a graph function at once, so that [Value] can read it. It is for inspecting a model:
// each operation is a device call, and values stay in memory until the run ends.
//
// An operation is compiled once per kind, shapes and attributes; the last 1,024 programs are kept. Goroutines may
// share an Eager.
type Eager struct {
	// CheckFinite, set before the first run, ends runs with a [*NotFiniteError] at the first NaN or infinity. It
	// doubles the number of programs.
	CheckFinite bool

	runtime *Runtime
	on      *pjrtClient
	keep    int

	mu       sync.Mutex
	programs map[string]*eagerProgram
	uses     int64
	compiled int
	took     time.Duration
}

type eagerProgram struct {
	executable *executable
	used       int64
}

// Compiled counts the programs.
func (e *Eager) Compiled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.compiled
}

// CompileTime is the total compile time.
func (e *Eager) CompileTime() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.took
}

// Close frees the compiled programs. The Eager stays usable.
func (e *Eager) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for text, p := range e.programs {
		errs = append(errs, p.executable.close())
		delete(e.programs, text)
	}
	return errors.Join(errs...)
}

func (e *Eager) execute(m *hlo.Module, operands []compute.Buffer) ([]compute.Buffer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := m.Text()
	p := e.programs[text]
	if p == nil {
		x, err := e.on.compileFor(m, false, false)
		if err != nil {
			return nil, err
		}
		e.compiled++
		e.took += x.took
		p = &eagerProgram{executable: x}
		e.programs[text] = p
	}
	e.uses++
	p.used = e.uses
	outputs, err := p.executable.Execute(operands, nil, 0)
	if err != nil {
		return nil, err
	}
	return outputs, e.evict()
}

func (e *Eager) evict() error {
	if len(e.programs) <= e.keep {
		return nil
	}
	oldest, at := "", e.uses
	for text, p := range e.programs {
		if p.used < at {
			oldest, at = text, p.used
		}
	}
	p := e.programs[oldest]
	delete(e.programs, oldest)
	return p.executable.close()
}

func (e *Eager) simple(name string, shape shapes.Shape, build func(f compute.Function, x compute.Value) (compute.Value, error), of compute.Buffer) (compute.Buffer, error) {
	var outputs []compute.Buffer
	b := hlo.New(name, func(m *hlo.Module) (_ compute.Executable, err error) {
		outputs, err = e.execute(m, []compute.Buffer{of})
		return &executable{module: m}, err
	})
	main := b.Main()
	x, err := main.Parameter("x", shape, nil)
	if err != nil {
		return nil, err
	}
	y, err := build(main, x)
	if err != nil {
		return nil, err
	}
	if err := main.Return([]compute.Value{y}, nil); err != nil {
		return nil, err
	}
	if _, err := b.Compile(); err != nil {
		return nil, err
	}
	return outputs[0], nil
}
