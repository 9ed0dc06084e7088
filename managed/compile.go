package managed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// compiled is a step for one state and one shape of batch.
type compiled struct {
	state   *State
	moves   int // the state's, when it was compiled
	runtime *xla.Runtime
	inputs  []strategies.Input
	// resident is the set that the batch has rows of; nil if the batch comes from the host.
	resident *data.Resident
	program  strategies.Program
	block    int // how many steps were asked for at once: 1 for [Stepper.Step]
	// values are the places in State.values of the program's state.
	values []int
	layout []logged
	wholes []logged
	// cast are the variables that a policy casts; nil before the first build.
	cast []*variable
	// args and batch are reused by each step.
	args    []strategies.Buffer
	batches [][]data.Array
}

// find gives the compiled form of the step for a state and a batch, with so many steps at once.
func (s *Stepper) find(state *State, batch data.Batch, block int) (*compiled, error) {
	if err := state.usable(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.compiled {
		if c.state == state && c.moves == state.moves && c.block == block && c.fits(batch) {
			return c, nil
		}
	}
	if err := s.leave(state); err != nil {
		return nil, err
	}
	if n := s.shapesOf(state, block); n >= cmp.Or(s.shapes, mostShapes) {
		return nil, fmt.Errorf("%w: it was compiled for %d: give it batches of one shape (data.Pad, data.PadSequences), close it now and then, or raise the limit by managed.MaxShapes",
			ErrShapes, n)
	}
	c := &compiled{state: state, moves: state.moves, runtime: state.strategy.Runtime(), block: block, resident: batch.Resident}
	for _, f := range batch.Fields {
		in, err := strategies.InputOf(f)
		if err != nil {
			return nil, err
		}
		c.inputs = append(c.inputs, in)
	}
	if err := s.compile(c); err != nil {
		return nil, err
	}
	s.compiled = append(s.compiled, c)
	s.warnOfShapes(c)
	return c, nil
}

// leave closes what was compiled for a state before it moved to another strategy.
func (s *Stepper) leave(state *State) error {
	var errs []error
	s.compiled = slices.DeleteFunc(s.compiled, func(c *compiled) bool {
		stale := c.state == state && c.moves != state.moves
		if stale {
			errs = append(errs, c.close())
		}
		return stale
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the programs of before the state moved: %w", err)
	}
	return nil
}

// close closes the program. That of a state that has moved away went with its runtime, if that was closed.
func (c *compiled) close() error {
	err := c.program.Close()
	if c.moves != c.state.moves && c.runtime.IsFinalized() {
		return nil
	}
	return err
}

// ErrShapes: a step met so many shapes of batches that something is wrong with them; each takes time and memory.
var ErrShapes = errors.New("too many shapes of batches")

// manyShapes is for how many shapes of batches a step is compiled before that is logged: it may be a mistake. From mostShapes
// on it is one.
const (
	manyShapes = 8
	mostShapes = 100
)

// shapesOf counts the shapes for which a step was compiled.
func (s *Stepper) shapesOf(state *State, block int) (n int) {
	for _, c := range s.compiled {
		if c.state == state && c.block == block {
			n++
		}
	}
	return n
}

func (s *Stepper) warnOfShapes(c *compiled) {
	if n := s.shapesOf(c.state, c.block); n == manyShapes {
		c.state.strategy.Runtime().Logger().Warn(fmt.Sprintf("managed: the %s was compiled for %d shapes of batches; each takes time and memory: "+
			"give it batches of one shape", s.name, n), "newest", fmt.Sprint(c.inputs))
	}
}

func (c *compiled) fits(batch data.Batch) bool {
	if len(c.inputs) != len(batch.Fields) || c.resident != batch.Resident {
		return false
	}
	for i, f := range batch.Fields {
		if in := c.inputs[i]; in.Name != f.Name || !in.Takes(f.Array) {
			return false
		}
	}
	return true
}

func (s *Stepper) compile(c *compiled) error {
	state := c.state
	var b *Builder
	var used []*variable
	resident, err := state.reside(c.resident)
	if err != nil {
		return err
	}
	program, err := state.strategy.Compile(strategies.Step{Name: s.name, Batch: c.inputs, Block: c.block,
		Build: func(g *graph.Graph, batch []*graph.Node) (built strategies.Built) {
			b = s.builder(g, c, batch)
			s.report(b, c)
			if s.train {
				graphs.At(s.build, func() { s.update(state, b.loss()) })
				train.ExecPerStepUpdateGraphFn(g)
			}
			used, built = state.slots(g)
			built.State = append(built.State, b.sets...)
			if logs := b.pack(); logs != nil {
				built.Outputs = append(built.Outputs, logs)
			}
			for _, w := range b.wholes {
				built.Outputs = append(built.Outputs, w.node)
			}
			built.Alone = len(b.wholes) > 0
			return built
		}})
	if err != nil {
		return err
	}
	if err := state.adopt(s.train); err != nil {
		return errors.Join(err, program.Close())
	}
	c.program = program
	if d := (dumped{s.name, program.StableHLO()}); !slices.Contains(state.programs, d) { // a step that was closed compiles again
		state.programs = append(state.programs, d)
	}
	for _, v := range used {
		c.values = append(c.values, state.index[v])
	}
	c.args = append(make([]strategies.Buffer, len(c.values)), resident...)
	for _, r := range b.resets {
		state.resets[r.variable] = r.to
	}
	c.layout, c.wholes = b.logged, b.wholes
	for _, list := range [][]logged{c.layout, c.wholes} {
		for i := range list {
			list[i].node = nil // the graph is compiled: let it go
		}
	}
	return nil
}

func (s *Stepper) builder(g *graph.Graph, c *compiled, batch []*graph.Node) *Builder {
	store := c.state.store
	b := &Builder{graph: g, scope: store.RootScope(), kind: "test", averages: s.averages}
	b.names, b.batch, b.sets = c.fields(g, batch)
	b.given = b.batch
	if s.train {
		b.kind = "train"
	}
	model.SetStore(g, store)
	store.SetTraining(g, s.train)
	model.SetGraphParam(g, builderParam, b)
	return b
}

// slots are the variables that a graph uses, and what becomes of them.
func (s *State) slots(g *graph.Graph) (used []*variable, built strategies.Built) {
	for v := range s.store.IterVariables() {
		if !v.InUseByGraph(g) {
			continue
		}
		used = append(used, v)
		slot := strategies.Slot{Parameter: g.GetParameterByName(v.Path())}
		if v.ChangedInGraph(g) {
			slot.New = v.NodeValue(g)
		}
		built.State = append(built.State, slot)
	}
	return used, built
}
