package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/metrics"
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
	// changes says which of the values the program changes, metrics which of them gather a metric, nil for the others.
	changes []bool
	metrics []*metrics.Accumulator
	// sets are those of the resident set, which the program is given behind the state's values.
	sets []strategies.Buffer
	// rooms are *room, for the steps that are being made.
	rooms sync.Pool
	used  int64 // when, in the stepper's count of uses
}

// room is what one call of a step needs.
type room struct {
	args    []strategies.Buffer
	batches []data.Batch
}

// lookup gives the compiled form of the step for a state and a batch, with so many steps at once; nil if there is none. The
// state is being read, or its structure held.
func (s *Stepper) lookup(state *State, batch data.Batch, block int) *compiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.compiled {
		if c.state == state && c.moves == state.moves && c.block == block && c.fits(batch) {
			s.uses++
			c.used = s.uses
			return c
		}
	}
	return nil
}

// prepareFor compiles the step, unless it was. Others may use the state meanwhile, if only they build nothing on it.
func (s *Stepper) prepareFor(ctx context.Context, state *State, batch data.Batch, block int) error {
	if err := state.structure.Change(ctx); err != nil {
		return of(err)
	}
	defer state.structure.DoneChanging()
	if err := state.usable(); err != nil {
		return err
	}
	batch, err := state.strategy.Batch(batch)
	if err != nil || s.lookup(state, batch, block) != nil {
		return err
	}
	inputs, err := strategies.Inputs(batch)
	if err != nil {
		return err
	}
	if err := errors.Join(s.leave(state), s.makeRoom(state, block)); err != nil {
		return err
	}
	c := &compiled{state: state, moves: state.moves, runtime: state.strategy.Runtime(), block: block, resident: batch.Resident, inputs: inputs}
	if err := s.compileFor(ctx, c, state.strategy); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	c.used = s.uses
	s.compiled = append(s.compiled, c)
	s.warnOfShapes(c)
	return nil
}

// leave closes what was compiled for a state before it moved to another strategy.
func (s *Stepper) leave(state *State) error {
	var errs []error
	for _, c := range s.drop(func(c *compiled) bool { return c.state == state && c.moves != state.moves }) {
		errs = append(errs, c.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the programs of before the state moved: %w", err)
	}
	return nil
}

// drop takes compiled forms out of the list.
func (s *Stepper) drop(which func(*compiled) bool) (dropped []*compiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compiled = slices.DeleteFunc(s.compiled, func(c *compiled) bool {
		if !which(c) {
			return false
		}
		dropped = append(dropped, c)
		return true
	})
	return dropped
}

// makeRoom sees to it that a step is not compiled for too many shapes: a training step is refused then, any other gives up
// the program that was used longest ago.
func (s *Stepper) makeRoom(state *State, block int) error {
	s.mu.Lock()
	n := s.shapesOf(state, block)
	var oldest *compiled
	for _, c := range s.compiled {
		if c.state == state && c.block == block && (oldest == nil || c.used < oldest.used) {
			oldest = c
		}
	}
	s.mu.Unlock()
	switch {
	case n < cmp.Or(s.shapes, mostShapes):
		return nil
	case s.train:
		return fmt.Errorf("%w: it was compiled for %d: give it batches of one shape (data.Pad, data.PadSequences), close it now and then, or raise the limit by managed.MaxShapes",
			ErrShapes, n)
	}
	var errs []error
	for _, c := range s.drop(func(c *compiled) bool { return c == oldest }) {
		state.programs = slices.DeleteFunc(state.programs, func(d dumped) bool { return d == c.dumped(s) })
		errs = append(errs, c.giveUp())
	}
	return errors.Join(errs...)
}

// giveUp closes the program when nobody runs it.
func (c *compiled) giveUp() error {
	if c.state.gate.Change(context.Background()) == nil {
		defer c.state.gate.DoneChanging()
	}
	return c.close()
}

func (c *compiled) dumped(s *Stepper) dumped { return dumped{s.name, c.program.StableHLO()} }

// close closes the program. That of a state that has moved away went with its runtime, if that was closed.
func (c *compiled) close() error {
	err := c.program.Close()
	if c.moves != c.state.moves && c.runtime.IsFinalized() {
		return nil
	}
	return err
}

// ErrShapes: a training step met so many shapes of batches that something is wrong with them; each takes time and memory.
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
	for i := range batch.Fields {
		if in, f := &c.inputs[i], &batch.Fields[i]; in.Name != f.Name || !in.Takes(f.Array) {
			return false
		}
	}
	return true
}

// compileFor compiles the step for its inputs under a strategy, and moves the variables that it brings in to where the state's
// wants them. The state's structure is held.
func (s *Stepper) compileFor(ctx context.Context, c *compiled, on strategies.Strategy) error {
	b, used, err := s.compile(c, on)
	if err != nil {
		return err
	}
	state := c.state
	if err := state.gate.Change(ctx); err != nil {
		return errors.Join(of(err), c.program.Close())
	}
	defer state.gate.DoneChanging()
	if err := state.adopt(s.train); err != nil {
		return errors.Join(err, c.program.Close())
	}
	if d := c.dumped(s); d.text != "" && !slices.Contains(state.programs, d) { // a step that was closed compiles again
		state.programs = append(state.programs, d)
	}
	for _, r := range b.resets {
		state.resets[r.variable] = r.to
	}
	for _, v := range used {
		c.values = append(c.values, state.index[v])
		var gathers *metrics.Accumulator
		if to, ok := state.resets[v]; ok {
			gathers = &to
		}
		c.metrics = append(c.metrics, gathers)
	}
	c.layout, c.wholes = b.logged, b.wholes
	for _, list := range [][]logged{c.layout, c.wholes} {
		for i := range list {
			list[i].node = nil // the graph is compiled: let it go
		}
	}
	return nil
}

// compile builds and compiles the step; see notInBuild. One function of a step is at work at a time, on whatever states.
func (s *Stepper) compile(c *compiled, on strategies.Strategy) (b *Builder, used []*variable, err error) {
	s.building.Lock()
	defer s.building.Unlock()
	state := c.state
	if c.sets, err = state.reside(c.resident); err != nil {
		return nil, nil, err
	}
	c.program, err = on.Compile(strategies.Step{Name: s.name, Batch: c.inputs, Block: c.block,
		Build: func(g *graph.Graph, batch []*graph.Node) (built strategies.Built) {
			b = s.builder(g, c, batch)
			s.report(b, c)
			if s.train {
				graphs.At(s.build, func() { s.update(state, b.loss()) })
				train.ExecPerStepUpdateGraphFn(g)
			}
			used, built = state.slots(g)
			c.changes = nil
			for _, slot := range built.State {
				c.changes = append(c.changes, slot.New != nil)
			}
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
	return b, used, err
}

func (s *Stepper) builder(g *graph.Graph, c *compiled, batch []*graph.Node) *Builder {
	store := c.state.store
	b := &Builder{graph: g, scope: store.RootScope(), kind: "test", averages: s.averages}
	b.names, b.batch, b.sets = c.fields(g, batch)
	b.given = b.batch
	if s.train {
		b.kind, b.optimizer = "train", s.ruleOf(c.state)
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
