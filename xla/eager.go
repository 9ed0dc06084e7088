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
	"github.com/lazo-ml/lazo/xla/hlo"
)

// Eager runs graph functions operation by operation: an operation runs as soon as the function
// adds it, so that [Value] can read it while the function is still at work. It is for looking into a model, not for
// training it: each operation is a call of the device, and all values of a run stay in memory until its end.
//
// Each operation is compiled alone, once for its kind, shapes and attributes; the 1,024 programs used last are kept
// until Close. It may be used by several goroutines.
type Eager struct {
	runtime *Runtime
	on      *client
	options EagerOptions
	keep    int // so many programs

	mu       sync.Mutex
	programs map[string]*eagerProgram // by the program's text
	uses     int64
	compiled int
	took     time.Duration
}

// EagerOptions are what an [Eager] can do besides.
type EagerOptions struct {
	// CheckFinite ends a run at the first operation that makes NaN or an infinity, with a [*NotFiniteError]. It costs a
	// second program for each operation.
	CheckFinite bool
}

// ErrNoValue: a node has no value that could be read.
var ErrNoValue = errors.New("the node has no value")

// eagerProgram is the program of one operation.
type eagerProgram struct {
	executable *executable
	used       int64 // when
}

// mostPrograms is how many programs are kept, of some 120 kB each on the CPU. A training step needs one or two hundred;
// data of ever new shapes needs ever new ones.
const mostPrograms = 1024

// NewEager fails with [ErrUnimplemented] for the Go backend, which runs whole graphs only.
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

// Compiled is how many programs were compiled so far.
func (e *Eager) Compiled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.compiled
}

// CompileTime is how long the plugin took to compile them.
func (e *Eager) CompileTime() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.took
}

// Close frees the compiled programs; the Eager can still be used and compiles again.
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

// Run calls build with a new graph that runs its operations as they come, and gives the values of the nodes that it
// returns, nil for a nil node; they are the caller's. inputs has the values of the graph's parameters by their names;
// they stay as they are. After an error nothing is left of the run. Nodes must not be used after it.
func (e *Eager) Run(name string, inputs map[string]compute.Buffer, build func(g *graph.Graph) []*graph.Node) (outputs []compute.Buffer, err error) {
	if e.runtime.closed.Load() {
		return nil, during(errClosed, "run %s", name)
	}
	r := &eagerRun{Runtime: e.runtime, eager: e, inputs: inputs, state: map[compute.Buffer]finiteness{}, lines: map[compute.Buffer]string{}}
	g := graph.NewGraph(r, name)
	if caught := graphs.Catch(func() { outputs, err = r.take(build(g)) }); caught != nil {
		err = caught
		if first := (*NotFiniteError)(nil); errors.As(err, &first) {
			err = first // the error around it only says that the operation was refused
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

// Value copies the value of a node to the host while the function that builds the graph is at work in [Eager.Run]. It
// fails with [ErrNoValue] in a graph that is compiled as a whole, and after the run.
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

// execute compiles a module, unless that was done, and runs it.
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

// evict frees the program that was used longest ago, if there are too many.
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

// simple runs a program of one input and one output.
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

// IsEager tells whether a graph is run operation by operation, so that [Value] can read its nodes.
func IsEager(g *graph.Graph) bool {
	_, eager := g.Backend().(*eagerRun)
	return eager
}
