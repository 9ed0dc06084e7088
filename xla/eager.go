package xla

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
)

// Eager runs each operation of a graph function at once, so that [Value] can read it. It is for inspecting a model, not
// for training: each operation is a device call, and values stay in memory until the run ends.
//
// An operation is compiled once per kind, shapes and attributes; the last 1,024 programs are kept. Goroutines may share
// an Eager.
type Eager struct {
	runtime *Runtime
	on      *client
	options EagerOptions
	keep    int

	mu       sync.Mutex
	programs map[string]*eagerProgram
	uses     int64
	compiled int
	took     time.Duration
}

// EagerOptions are options of an [Eager].
type EagerOptions struct {
	// CheckFinite ends a run with a [*NotFiniteError] at the first NaN or infinity. It doubles the number of programs.
	CheckFinite bool
}

// ErrNoValue reports that a node has no readable value.
var ErrNoValue = errors.New("the node has no value")

type eagerProgram struct {
	executable *executable
	used       int64
}

// mostPrograms take about 120 kB each on the CPU. A training step needs up to 200.
const mostPrograms = 1024

// NewEager makes an Eager. It fails for [Go] ([ErrUnimplemented]) and a described machine ([ErrNotRun]).
func NewEager(on *Runtime, options EagerOptions) (*Eager, error) {
	if d, ok := on.Backend.(*described); ok {
		return nil, fmt.Errorf("xla: eager: %w: %s runs no operations: compile whole steps for it, by strategies.Jit or strategies.DataParallel", ErrNotRun, d.name)
	}
	c, ok := on.Backend.(*client)
	if !ok {
		return nil, fmt.Errorf("xla: eager: %w: the plugin %q runs whole graphs only; open one of XLA's, such as %q", ErrUnimplemented, on.plugin.Kind, CPU)
	}
	return &Eager{runtime: on, on: c, options: options, keep: mostPrograms, programs: map[string]*eagerProgram{}}, nil
}

// Compiled returns the number of compiled programs.
func (e *Eager) Compiled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.compiled
}

// CompileTime returns the total compile time.
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

// Run calls build with an eager graph and returns the values of its nodes, nil for nil, which the caller owns. inputs
// are the parameters by name; they stay unchanged. An error leaves nothing. Nodes are invalid after Run.
func (e *Eager) Run(name string, inputs map[string]compute.Buffer, build func(g *graph.Graph) []*graph.Node) (outputs []compute.Buffer, err error) {
	if e.runtime.closed.Load() {
		return nil, during(errClosed, "run %s", name)
	}
	r := &eagerRun{Runtime: e.runtime, eager: e, inputs: inputs, state: map[compute.Buffer]finiteness{}, lines: map[compute.Buffer]string{}}
	g := graph.NewGraph(r, name)
	if caught := graphs.Catch(func() { outputs, err = r.take(build(g)) }); caught != nil {
		err = caught
		if first := (*NotFiniteError)(nil); errors.As(err, &first) {
			err = first
		}
	}
	g.Finalize()
	if freeErr := r.free(); freeErr != nil {
		err = errors.Join(err, freeErr)
	}
	if err != nil {
		for _, b := range outputs {
			if b != nil {
				err = errors.Join(err, b.Finalize())
			}
		}
		return nil, during(err, "run %s operation by operation", name)
	}
	return outputs, nil
}

// Value waits for a node's value and copies it to the host, within the build function of [Eager.Run]. Elsewhere it is
// [ErrNoValue].
func Value(n *graph.Node) (*tensors.Tensor, error) {
	if n == nil || n.Graph() == nil {
		return nil, fmt.Errorf("xla: %w: it is nil", ErrNoValue)
	}
	var t *tensors.Tensor
	err := graphs.Catch(func() {
		of := n.Graph().Backend()
		r, ok := of.(*eagerRun)
		switch {
		case of == nil:
			panic(fmt.Errorf("%w: its run is over", ErrNoValue))
		case !ok:
			panic(fmt.Errorf("%w: its graph %q is not run operation by operation", ErrNoValue, n.Graph().Name()))
		}
		b, err := r.buffer(n)
		if err != nil {
			panic(err)
		}
		t = tensors.FromShape(n.Shape())
		var copyErr error
		if err = t.MutableFlatData(func(flat any) { copyErr = b.ToFlatData(flat) }); err == nil {
			err = copyErr
		}
		if err != nil {
			panic(err)
		}
	})
	if err != nil {
		return nil, during(err, "value of a node")
	}
	return t, nil
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

// IsEager reports whether [Value] can read the graph's nodes.
func IsEager(g *graph.Graph) bool {
	_, eager := g.Backend().(*eagerRun)
	return eager
}
