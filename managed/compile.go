package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/awaited"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/strategies"
)

// prepareFor lets others use the state, but not build on it.
func (s *Stepper) prepareFor(ctx context.Context, state *State, batch data.Batch, block int) error {
	done, err := state.values.HoldStructure(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := state.values.Last.Usable(); err != nil {
		return err
	}
	batch, err = state.values.Strategy().Batch(batch)
	if err != nil || s.cache.lookup(state, batch, block) != nil {
		return err
	}
	inputs, err := strategies.Inputs(batch)
	if err != nil {
		return err
	}
	if err := errors.Join(s.leave(state), s.makeRoom(state, block)); err != nil {
		return err
	}
	on := state.values.Strategy()
	defer state.compiles.begin()()
	c := &compiled{step: s, state: state, moves: state.values.Moves(), runtime: on.Runtime(), block: block,
		resident: batch.Resident, inputs: inputs}
	if err := s.compileFor(ctx, c, on.Compile); err != nil {
		return err
	}
	s.cache.add(c)
	if n, _ := s.cache.shapes(state, block); n == manyShapes {
		on.Runtime().Logger().Warn(fmt.Sprintf("managed: the %s was compiled for %d shapes of batches; each takes time and "+
			"memory: give it batches of one shape", s.name, n), "newest", fmt.Sprint(c.inputs))
	}
	return nil
}

func (s *Stepper) leave(state *State) error {
	stale := func(c *compiled) bool { return c.state == state && c.stale() }
	if err := s.cache.drop(stale, (*compiled).close); err != nil {
		return fmt.Errorf("close the programs compiled before the state moved: %w", err)
	}
	return nil
}

func (s *Stepper) makeRoom(state *State, block int) error {
	n, oldest := s.cache.shapes(state, block)
	switch {
	case n < cmp.Or(s.shapes, mostShapes):
		return nil
	case s.train:
		return fmt.Errorf("%w: it was compiled for %d: give it batches of one shape (data.Pad, data.PadSequences), "+
			"close it from time to time, or raise the limit by managed.MaxShapes", ErrShapes, n)
	}
	return s.cache.drop(func(c *compiled) bool { return c == oldest }, func(c *compiled) error {
		state.programs = slices.DeleteFunc(state.programs, func(d dumped) bool { return d == c.dumped(s) })
		return c.giveUp()
	})
}

// ErrShapes reports too many shapes of batches for a training step ([MaxShapes]).
var ErrShapes = errors.New("too many shapes of batches")

const (
	manyShapes = 8
	mostShapes = 100
)

type compiler func(strategies.Step) (strategies.Program, error)

// compileFor needs the structure held. It compiles again if a new pack's saved scalars differ, or if the program
// depends on the optimizer's variables and made some.
func (s *Stepper) compileFor(ctx context.Context, c *compiled, by compiler) error {
	c.building = ctx
	defer func() { c.building = nil }()
	for {
		again, err := s.compileOnce(ctx, c, by)
		if err != nil {
			c.state.model.dropFresh(&c.state.values)
			return err
		}
		if !again {
			return nil
		}
		if err := c.program.Close(); err != nil {
			return err
		}
		c.program, c.values, c.metrics = nil, nil, nil
	}
}

func (s *Stepper) compileOnce(ctx context.Context, c *compiled, by compiler) (again bool, err error) {
	b, used, err := s.compile(c, by)
	if err != nil {
		return false, err
	}
	state := c.state
	done, err := state.values.AddValues(ctx, true)
	if err != nil {
		return false, errors.Join(err, c.program.Close())
	}
	defer done()
	step := s.asking(state, b, used)
	fresh := state.values.Fresh(state.model.store)
	if len(fresh) > 0 {
		err = state.fit(fresh, step)
		if err == nil {
			err = state.values.Adopt(fresh, state.model.store, &state.model.given)
		}
	}
	if err != nil {
		return false, errors.Join(err, c.program.Close())
	}
	state.saved.note(step.usedStep)
	state.values.NotePacks(state.model.store)
	c.equal = nil
	for _, v := range b.equal {
		c.equal = append(c.equal, state.values.Place(v))
	}
	ofOptimizer := func(v *model.Variable) bool { return state.model.ofOptimizer[v] }
	if c.apart() || b.awaiting.Open && slices.ContainsFunc(fresh, ofOptimizer) {
		return true, nil
	}
	if d := c.dumped(s); d.text != "" && !slices.Contains(state.programs, d) {
		state.programs = append(state.programs, d)
	}
	for _, r := range b.resets {
		state.model.resets[r.variable] = r.to
	}
	for _, v := range used {
		c.values = append(c.values, state.values.Place(v))
		var gathers *metrics.Accumulator
		if to, ok := state.model.resets[v]; ok {
			gathers = &to
		}
		c.metrics = append(c.metrics, gathers)
	}
	if len(b.resets) > 0 {
		c.claim = state.gathering.claimOf(c)
	}
	c.open, c.variables = b.awaiting.Open, state.values.Len()
	c.layout, c.wholes = b.logged, b.wholes
	for _, list := range [][]logged{c.layout, c.wholes} {
		for i := range list {
			list[i].node = nil
		}
	}
	return false, nil
}

func (s *Stepper) asking(state *State, b *Builder, used []*model.Variable) asking {
	id, place := s.id()
	if s.scope != "" {
		used = slices.DeleteFunc(slices.Clone(used), func(v *model.Variable) bool { return v.Path() == globalStep })
	}
	return asking{usedStep{stepID: id, Uses: state.model.uses(used, b.trained), Trains: paths(b.trained)}, place,
		func(v *model.Variable) bool {
			return slices.ContainsFunc(b.resets, func(r reset) bool { return r.variable == v })
		},
		func(v *model.Variable) bool { return state.model.ofOptimizer[v] }, state.model.numbers}
}

// dropFresh keeps the random state, which has the seed.
func (d *definition) dropFresh(values *store.Store) {
	for _, v := range values.Fresh(d.store) {
		if v.Path() == store.RandomName {
			continue
		}
		_ = d.store.DeleteVariable(v.Path()) // its error is about its value, which it lacks
		delete(d.ofOptimizer, v)
	}
}

// compile needs the structure held. One build function at a time runs, of all states.
func (s *Stepper) compile(c *compiled, by compiler) (b *Builder, used []*model.Variable, err error) {
	s.building.Lock()
	defer s.building.Unlock()
	state := c.state
	if c.sets, err = state.values.Reside(c.resident); err != nil {
		return nil, nil, err
	}
	c.program, err = by(strategies.Step{Name: s.name, Batch: c.inputs, Block: c.block,
		Build: func(g *graph.Graph, batch []*graph.Node) (built strategies.Built) {
			b = s.builder(g, c, batch)
			s.report(b, c)
			if s.train {
				graphs.At(s.build, func() { s.update(state, b, b.loss()) })
				train.ExecPerStepUpdateGraphFn(g)
			}
			used, built = state.model.slots(g)
			if c.program == nil { // eager may take another branch later
				c.changed = nil
				for _, slot := range built.State {
					c.changed = append(c.changed, slot.New != nil)
				}
			}
			built.State = append(built.State, b.sets...)
			if logs := b.pack(); logs != nil {
				built.Read = []int{len(built.Outputs)}
				built.Outputs = append(built.Outputs, logs)
			}
			for _, w := range b.wholes {
				if s.outputsAlone {
					built.Read = append(built.Read, len(built.Outputs))
				}
				built.Outputs = append(built.Outputs, w.node)
			}
			built.Alone = len(b.wholes) > 0
			return built
		}})
	return b, used, err
}

func (s *State) awaiting() *awaited.Values {
	a := &awaited.Values{Shapes: map[string]shapes.Shape{}, Numbers: s.model.numbers}
	for name, t := range s.model.given.All() {
		a.Shapes[name] = t.Shape()
	}
	if r := s.awaited(); len(r.tensors) > 0 {
		a.Saved = func(name string) int64 {
			n, _, _, err := s.savedScalar(r, name, dtypes.Int64)
			if err != nil {
				panic(fmt.Errorf("%s: %w", name, err))
			}
			return n
		}
	}
	a.Bring = func(name string) *model.Variable {
		v := s.model.store.VariableWithShape(name, a.Shapes[name], initializer.Zero).SetTrainable(false)
		s.model.ofOptimizer[v] = true
		return v
	}
	return a
}

func (s *Stepper) builder(g *graph.Graph, c *compiled, batch []*graph.Node) *Builder {
	store := c.state.model.store
	b := &Builder{graph: g, scope: store.RootScope(), kind: "test", building: c.building, averages: s.averages, outputsAlone: s.outputsAlone}
	b.names, b.batch, b.sets = c.fields(g, batch)
	b.given = b.batch
	if s.train {
		b.kind, b.optimizer = "train", s.ruleOf(c.state)
		b.only = func(name string) bool {
			v := store.GetVariable(name)
			return (s.only == nil || s.only(name)) && (b.optimizer == nil || v == nil || !b.optimizer.Freezes(name, v.Shape()))
		}
	}
	model.SetStore(g, store)
	store.SetTraining(g, s.train)
	model.SetGraphParam(g, builderParam, b)
	layering.SetStep(g, inStep{b})
	model.SetGraphParam(g, graphs.AgainParam, b.again)
	b.awaiting = c.state.awaiting()
	b.awaiting.Equal = func(pack *model.Variable) { b.equal = append(b.equal, pack) }
	awaited.Give(g, b.awaiting)
	return b
}
