package managed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
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
	shapes   int // the most shapes of batches; 0 is mostShapes

	mu       sync.Mutex
	compiled []*compiled
}

var (
	_ loop.BlockStepper[*State, data.Batch] = (*Stepper)(nil)
	_ loop.Awaiter[*State]                  = (*Stepper)(nil)
)

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

// RunningAverages has a step report, for each loss and each figure of [AddMetric], its mean since the last reset, as avg_<name>; see
// [Builder.Mean].
func RunningAverages() StepOption { return func(s *Stepper) { s.averages = true } }

// MaxShapes is for how many shapes of batches a step is compiled on one state, 100 if it is not said; one more is [ErrShapes].
func MaxShapes(n int) StepOption { return func(s *Stepper) { s.shapes = n } }

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
	if s.build == nil {
		s.build = func(*Builder) { panic(errors.New("the function that builds the step is nil")) }
	}
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
		return state, loop.Logs{}, s.failed(err)
	}
	logs, err := s.someSteps(state, []data.Batch{batch}, 1)
	if err != nil {
		return state, loop.Logs{}, s.failed(err)
	}
	return state, logs[0], nil
}

// failed says that it was this step; a loop, which says so too, takes the point alone.
func (s *Stepper) failed(err error) error {
	return &graphs.Failure{Package: "managed", What: s.name, Err: err}
}

// maxBlock is how many steps are made at once where a step is tiny: more gains nothing that could be measured.
const maxBlock = 100

// BlockSize is how many steps the loop may give to StepBlock.
func (s *Stepper) BlockSize() int { return maxBlock }

// StepBlock makes the steps of several batches, as many as fit in one program run: see [loop.BlockStepper]. How many that
// are is a matter of the model's and the batches' size (see [strategies.Program]); the steps compute the same bits however
// they are divided. A context that ends is not heeded: the batches are taken from the data, and a run is to end where that is.
func (s *Stepper) StepBlock(_ context.Context, state *State, batches []data.Batch) (*State, []loop.Logs, error) {
	all := make([]loop.Logs, 0, len(batches))
	for len(batches) > 0 {
		logs, err := s.someSteps(state, batches, maxBlock)
		if err != nil {
			return state, all, s.failed(err)
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
		return s.failed(err)
	}
	return nil
}

// someSteps makes the steps of the first batches, as many as go together, by a program of at most so many steps.
func (s *Stepper) someSteps(state *State, batches []data.Batch, most int) ([]loop.Logs, error) {
	if state == nil {
		return nil, errors.New("the state is nil: make one with New")
	}
	if s.train {
		state.noteBatch(batches[0])
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

// Entries are the full names of what the step logs, as "losses.loss", as it was compiled last; nil before.
func (s *Stepper) Entries() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.compiled) == 0 {
		return nil
	}
	c := s.compiled[len(s.compiled)-1]
	for _, l := range slices.Concat(c.layout, c.wholes) {
		paths = append(paths, loop.Entry{Collection: l.collection, Name: l.name}.Path())
	}
	return paths
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
