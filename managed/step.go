package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/train"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Stepper is a step that can run on any number of states: it is compiled for each state and each shape of batch that
// it meets, and keeps what it compiled until Close.
type Stepper struct {
	name     string
	train    bool
	build    Build
	only     func(name string) bool // nil: all
	rule     Optimizer              // nil: the state's
	scope    string                 // of what the rule keeps
	averages bool

	mu       sync.Mutex
	compiled []*compiled
}

var (
	_ loop.BlockStepper[*State, data.Batch] = (*Stepper)(nil)
	_ loop.Awaiter[*State]                  = (*Stepper)(nil)
)

// compiled is a step for one state and one shape of batch.
type compiled struct {
	state   *State
	moves   int // the state's, when it was compiled
	runtime *xla.Runtime
	inputs  []strategies.Input
	program strategies.Program
	block   int // how many steps were asked for at once: 1 for [Stepper.Step]
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

// StepOption is a setting of a step.
type StepOption func(*Stepper)

// Only has a train step update those trainable variables alone whose full names ("/generator/dense/weights") match.
func Only(match func(name string) bool) StepOption { return func(s *Stepper) { s.only = match } }

// By has a train step update with another optimizer than the state's: several train steps on one state, as of a generator and
// its discriminator, each have their own. Its learning rate and its count of steps are under the scope of that name. Two Adams
// that train the same parameter share its moments: GoMLX keeps them by the parameter's name.
func By(name string, o Optimizer) StepOption {
	return func(s *Stepper) { s.scope, s.rule = name, o }
}

// RunningAverages has a step report, for each loss, its mean since the last reset, as avg_<name>; see [Builder.Mean].
func RunningAverages() StepOption { return func(s *Stepper) { s.averages = true } }

// TrainStep is a step that reports at least one loss; the sum of its losses is differentiated and the state's
// optimizer updates the trainable variables that the step uses.
func TrainStep(build Build, options ...StepOption) *Stepper {
	return newStepper(&Stepper{name: "train step", train: true, build: build}, options)
}

// TestStep is a step that computes and reports; it changes no parameter.
func TestStep(build Build, options ...StepOption) *Stepper {
	return newStepper(&Stepper{name: "test step", build: build}, options)
}

func newStepper(s *Stepper, options []StepOption) *Stepper {
	for _, o := range options {
		o(s)
	}
	return s
}

// String is "train step" or "test step".
func (s *Stepper) String() string { return s.name }

// Step makes one step and changes the state in place; it returns the same state. The logs are read from the device
// when somebody asks for a value. The first step on a state, and the first with a new shape of batch, compiles.
//
// A loop calls StepBlock instead, whose program is another one where steps are small: the last bit may differ.
func (s *Stepper) Step(ctx context.Context, state *State, batch data.Batch) (*State, loop.Logs, error) {
	if err := context.Cause(ctx); err != nil {
		return state, loop.Logs{}, fmt.Errorf("managed: %s: %w", s.name, err)
	}
	logs, err := s.someSteps(state, []data.Batch{batch}, 1)
	if err != nil {
		return state, loop.Logs{}, fmt.Errorf("managed: %w", err)
	}
	return state, logs[0], nil
}

// maxBlock is how many steps are made at once where a step is tiny: more gains nothing that could be measured.
const maxBlock = 100

// BlockSize is how many steps the loop may give to StepBlock.
func (s *Stepper) BlockSize() int { return maxBlock }

// StepBlock makes the steps of several batches, as many as fit in one program run: see [loop.BlockStepper]. How many that
// are is a matter of the model's and the batches' size (see [strategies.Program]); the steps compute the same bits however
// they are divided.
func (s *Stepper) StepBlock(ctx context.Context, state *State, batches []data.Batch) (*State, []loop.Logs, error) {
	all := make([]loop.Logs, 0, len(batches))
	for len(batches) > 0 {
		if err := context.Cause(ctx); err != nil {
			return state, all, err
		}
		logs, err := s.someSteps(state, batches, maxBlock)
		if err != nil {
			return state, all, fmt.Errorf("managed: %w", err)
		}
		all, batches = append(all, logs...), batches[len(logs):]
	}
	return state, all, nil
}

// Await waits for the steps of the state that were begun, and gives the error of one that failed, unless it was given
// before: see [loop.Awaiter] and [State.Wait].
func (s *Stepper) Await(_ context.Context, state *State) error {
	if state == nil {
		return nil
	}
	if err := state.follow(nil); err != nil {
		return fmt.Errorf("managed: %s: %w", s.name, err)
	}
	return nil
}

// someSteps makes the steps of the first batches, as many as go together, by a program of at most so many steps.
func (s *Stepper) someSteps(state *State, batches []data.Batch, most int) ([]loop.Logs, error) {
	if state == nil {
		return nil, errors.New("the state is nil: make one with New")
	}
	first, err := state.strategy.Batch(batches[0])
	if err != nil {
		return nil, err
	}
	c, err := s.find(state, first, most)
	if err != nil {
		return nil, err
	}
	c.take(0, first)
	n := 1
	for n < min(len(batches), c.program.Block()) {
		next, err := state.strategy.Batch(batches[n])
		if err != nil || !c.fits(next) {
			break // the steps before it are made first
		}
		c.take(n, next)
		n++
	}
	return c.steps(n)
}

// take notes a batch of the steps to be made.
func (c *compiled) take(i int, batch data.Batch) {
	if i == len(c.batches) {
		c.batches = append(c.batches, nil)
	}
	arrays := c.batches[i][:0]
	for _, f := range batch.Fields {
		arrays = append(arrays, f.Array)
	}
	c.batches[i] = arrays
}

// steps starts the steps of the first n batches that were taken, and waits for those before them.
func (c *compiled) steps(n int) ([]loop.Logs, error) {
	state := c.state
	for i, v := range c.values {
		c.args[i] = state.values[v].buffer
	}
	changed, outputs, running, err := c.program.Start(c.args, c.batches[:n])
	if errors.Is(err, strategies.ErrStateLost) {
		state.lost = err
	}
	if err != nil {
		return nil, err
	}
	for i, v := range c.values {
		if changed[i] != nil {
			state.values[v].buffer = changed[i]
		}
	}
	logs, err := c.logs(outputs, n)
	if err = errors.Join(err, state.follow(running)); err != nil {
		return nil, err
	}
	return logs, nil
}

// logs makes the logs of n steps.
func (c *compiled) logs(outputs []strategies.Buffer, n int) (logs []loop.Logs, err error) {
	state := c.state
	logs = make([]loop.Logs, n)
	if len(c.layout) > 0 {
		var p *packed
		p, logs = newLogs(state.strategy, outputs[0], c.layout, n)
		err = state.unread.add(&p.remote)
		outputs = outputs[1:]
	}
	for i, w := range c.wholes { // then n is 1
		o := &output{remote{device: &onDevice{strategy: state.strategy, buffer: outputs[i]}}}
		logs[0].Set(w.collection, w.name, o)
		err = errors.Join(err, state.unread.add(&o.remote))
	}
	return logs, err
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
	c := &compiled{state: state, moves: state.moves, runtime: state.strategy.Runtime(), block: block}
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
		return fmt.Errorf("%s: close the programs of before the state moved: %w", s.name, err)
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

// manyShapes is for how many shapes of batches a step is compiled before that is logged: it may be a mistake.
const manyShapes = 8

func (s *Stepper) warnOfShapes(c *compiled) {
	n := 0
	for _, other := range s.compiled {
		if other.state == c.state && other.block == c.block {
			n++
		}
	}
	if n == manyShapes {
		c.state.strategy.Runtime().Logger().Warn(fmt.Sprintf("managed: the %s was compiled for %d shapes of batches; each takes time and memory: "+
			"give it batches of one shape", s.name, n), "newest", fmt.Sprint(c.inputs))
	}
}

func (c *compiled) fits(batch data.Batch) bool {
	if len(c.inputs) != len(batch.Fields) {
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
	program, err := state.strategy.Compile(strategies.Step{Name: s.name, Batch: c.inputs, Block: c.block,
		Build: func(g *graph.Graph, batch []*graph.Node) (built strategies.Built) {
			b = s.builder(g, state, c.inputs, batch)
			defer b.end()
			s.report(b, c)
			if s.train {
				graphs.At(s.build, func() { s.update(state, b.loss()) })
				train.ExecPerStepUpdateGraphFn(state.vars, g)
			}
			used, built = state.slots(g)
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
		return errors.Join(fmt.Errorf("%s: %w", s.name, err), program.Close())
	}
	c.program = program
	if d := (dumped{s.name, program.StableHLO()}); !slices.Contains(state.programs, d) { // a step that was closed compiles again
		state.programs = append(state.programs, d)
	}
	for _, v := range used {
		c.values = append(c.values, state.index[v])
	}
	c.args = make([]strategies.Buffer, len(c.values))
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

func (s *Stepper) builder(g *graph.Graph, state *State, inputs []strategies.Input, batch []*graph.Node) *Builder {
	b := &Builder{graph: g, vars: state.vars, batch: batch, kind: "test", averages: s.averages}
	if s.train {
		b.kind = "train"
	}
	for _, in := range inputs {
		b.names = append(b.names, in.Name)
	}
	state.vars.SetTraining(g, s.train)
	state.vars.InAbsPath("/").SetGraphParam(g, builderParam, b)
	return b
}

// slots are the variables that a graph uses, and what becomes of them.
func (s *State) slots(g *graph.Graph) (used []*variable, built strategies.Built) {
	for v := range s.vars.IterVariables() {
		if !v.InUseByGraph(g) {
			continue
		}
		used = append(used, v)
		slot := strategies.Slot{Parameter: g.GetParameterByName(v.ParameterName())}
		if v.ChangedInGraph(g) {
			slot.New = v.ValueGraph(g)
		}
		built.State = append(built.State, slot)
	}
	return used, built
}

// update adds the gradient and the optimizer's rule to the graph.
func (s *Stepper) update(state *State, loss *Node) {
	rule, vars := state.optimizer, state.vars
	if s.rule != nil {
		rule = s.rule
	}
	if s.scope != "" {
		vars = vars.In(s.scope)
	}
	if rule == nil {
		panic(errors.New("the state has no optimizer: give managed.New a WithOptimizer"))
	}
	by, ok := rule.(gradientOptimizer)
	if !ok {
		panic(fmt.Errorf("optimizer %T cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)", rule))
	}
	var parameters []*Node
	before := map[*variable]bool{}
	for v := range state.vars.IterVariables() {
		before[v] = true
		switch {
		case !v.Trainable || !v.InUseByGraph(loss.Graph()):
		case s.only != nil && !s.only(v.ScopeAndName()):
			v.Trainable = false // optimizers look for themselves which variables the gradients are of
			defer func() { v.Trainable = true }()
		default:
			parameters = append(parameters, v.ValueGraph(loss.Graph()))
		}
	}
	if len(parameters) == 0 {
		panic(errors.New("the train step uses no trainable variable, so there is nothing to train: give the builder's Vars to layers"))
	}
	defer func() { // also after a panic: the next build finds the variables there
		for v := range state.vars.IterVariables() {
			if !before[v] {
				state.ofOptimizer[v] = true
			}
		}
	}()
	by.UpdateGraphWithGradients(vars, autodiff.Gradient(loss, parameters...), loss.DType())
}

// StableHLO gives the programs that the step was compiled to, one for each state and each shape of batch that it met.
func (s *Stepper) StableHLO() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	programs := make([]string, len(s.compiled))
	for i, c := range s.compiled {
		programs[i] = c.program.StableHLO()
	}
	return programs
}

// CompileTime is how long the plugin took to compile them.
func (s *Stepper) CompileTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	for _, c := range s.compiled {
		sum += c.program.CompileTime()
	}
	return sum
}

// Close frees the compiled programs; the step can still be used and compiles again.
func (s *Stepper) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.compiled {
		errs = append(errs, c.close())
	}
	s.compiled = nil
	return errors.Join(errs...)
}
