package strategies

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/xla"
)

// Eager runs each step operation by operation on the runtime's first device, so that a build function can read node
// values by [xla.Value]. It is for debugging and much slower than [Jit].
//
// The build function is called at compilation, without values, and in each step, where it may build another graph by
// the values, but only with variables of its first call.
func Eager(on *xla.Runtime, options ...func(*xla.Eager)) Strategy {
	return &eager{firstDevice: firstDevice{on, "eager"}, options: slices.Clone(options)}
}

// CheckFinite is an option of [Eager] that ends a step at the first NaN or infinite result, with an
// [*xla.NotFiniteError]. The state does not change.
func CheckFinite(e *xla.Eager) { e.CheckFinite = true }

type eager struct {
	firstDevice
	options []func(*xla.Eager)

	// the last closed program frees them
	mu         sync.Mutex // guards the two below
	operations *xla.Eager
	programs   int
}

func (e *eager) Compile(s Step) (Program, error) {
	if err := e.ready(); err != nil {
		return nil, err
	}
	operations, err := e.open()
	if err != nil {
		return nil, fmt.Errorf("strategies: eager: compile %s: %w", s.Name, err)
	}
	p := &eagerProgram{eager: e, operations: operations, step: s, places: map[string]int{}}
	whole, err := e.runtime.Lower(s.Name, func(g *graph.Graph) (out xla.Built) {
		_, built := p.step.Graph(g)
		for i, slot := range built.State {
			name := slot.Parameter.GetParameterName()
			p.names, p.places[name] = append(p.names, name), i
			if slot.New != nil {
				out.Outputs = append(out.Outputs, slot.New)
			}
		}
		out.Outputs = append(out.Outputs, built.Outputs...)
		return out
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.text = whole.Text()
	return p, nil
}

func (e *eager) open() (*xla.Eager, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.operations == nil {
		operations, err := xla.NewEager(e.runtime)
		if err != nil {
			return nil, err
		}
		for _, o := range e.options {
			if o != nil {
				o(operations)
			}
		}
		e.operations = operations
	}
	e.programs++
	return e.operations, nil
}

func (e *eager) release() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.programs--; e.programs > 0 {
		return nil
	}
	return e.operations.Close()
}

type eagerProgram struct {
	*eager
	operations *xla.Eager
	step       Step
	mu         sync.Mutex // serializes runs
	names      []string   // of the state's values in the graph
	places     map[string]int
	text       string
	took       time.Duration
}

func (p *eagerProgram) Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running Running, err error) {
	if len(batches) != 1 {
		return nil, nil, nil, fmt.Errorf("strategies: eager: run %s: %d batches at once: it takes one", p.step.Name, len(batches))
	}
	changed, outputs, err = p.run(state, batches[0].Fields)
	return changed, outputs, nil, err
}

func (p *eagerProgram) run(state []compute.Buffer, batch []data.Field) (changed, outputs []compute.Buffer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fail := func(err error) error {
		return fmt.Errorf("strategies: eager: run %s: %w", p.step.Name, xla.WrapError(err))
	}
	if p.operations == nil {
		return nil, nil, fail(errors.New("the program is closed"))
	}
	if len(state) != len(p.names) || len(batch) != len(p.step.Batch) {
		return nil, nil, fail(fmt.Errorf("expected %d values of state and %d fields of a batch, got %d and %d", len(p.names), len(p.step.Batch), len(state), len(batch)))
	}
	inputs := map[string]compute.Buffer{}
	for i, name := range p.names {
		inputs[name] = state[i]
	}
	for i, f := range batch {
		in := p.step.Batch[i]
		if err := in.accept(f.Array); err != nil {
			return nil, nil, fail(err)
		}
		b, putErr := p.runtime.BufferFromFlatData(0, f.Array.Flat, in.Shape)
		if putErr != nil {
			return nil, nil, fail(fmt.Errorf("%s of the batch: %w", in.Name, putErr))
		}
		defer func() {
			if freeErr := p.Free(b); freeErr != nil {
				err = errors.Join(err, freeErr)
			}
		}()
		inputs[batchPrefix+in.Name] = b
	}
	var places []int
	before := p.operations.CompileTime()
	made, err := p.operations.Run(p.step.Name, inputs, func(g *graph.Graph) (nodes []*graph.Node) {
		_, built := p.step.Graph(g)
		for _, slot := range built.State {
			if slot.New != nil {
				places, nodes = append(places, p.places[slot.Parameter.GetParameterName()]), append(nodes, slot.New)
			}
		}
		return append(nodes, built.Outputs...)
	})
	p.took += p.operations.CompileTime() - before
	if err != nil {
		return nil, nil, err
	}
	changed = make([]compute.Buffer, len(state))
	for i, place := range places {
		changed[place] = made[i]
		if freeErr := p.Free(state[place]); freeErr != nil {
			err = errors.Join(err, freeErr)
		}
	}
	if err != nil {
		return nil, nil, fail(fmt.Errorf("%w: %w", ErrStateLost, errors.Join(err, p.Free(made...))))
	}
	return changed, made[len(places):], nil
}

func (p *eagerProgram) Block() int { return 1 }

func (p *eagerProgram) Rebuilds() bool { return true }

func (p *eagerProgram) StableHLO() string { return p.text }

// It counts operations that this program used first.
func (p *eagerProgram) CompileTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

func (p *eagerProgram) Cost() (xla.Cost, error) { return xla.Cost{}, errNotWhole }

func (p *eagerProgram) Memory() (xla.Memory, error) { return xla.Memory{}, errNotWhole }

func (p *eagerProgram) Compiled() *xla.Program { return nil }

var errNotWhole = fmt.Errorf("strategies: %w: the strategy eager does not know it", xla.ErrUnimplemented)

func (p *eagerProgram) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.operations == nil {
		return nil
	}
	p.operations = nil
	return p.release()
}
