package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/blocks"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/optim"
)

// Stepper is a step for any number of states. It compiles for each state and shape of batch ([MaxShapes]), and frees
// its programs in Close. It is safe for concurrent use. One goroutine at a time calls its build function. A type that
// embeds it and overrides Step overrides StepBlock too.
type Stepper struct {
	stepSettings
	building sync.Mutex  // held by a build
	closing  sync.Mutex  // held by Close
	changing atomic.Bool // a program of the step changes a state
	cache    cache
}

type stepSettings struct {
	name         string
	train        bool
	build        Build
	only         func(name string) bool
	rule         *optim.Optimizer
	scope        string
	averages     bool
	rates        bool
	outputsAlone bool
	shapes       int
}

var (
	_ loop.Stepper[*State, data.Batch] = (*Stepper)(nil)
	_ abilities.Awaiter[*State]        = (*Stepper)(nil)
	_ abilities.Evaluator[*State]      = (*Stepper)(nil)
)

// StepOption is a setting of a step.
type StepOption func(*stepSettings)

// TrainOnly restricts a training step's updates to variables whose full names ("/generator/dense/weights") match.
func TrainOnly(match func(name string) bool) StepOption {
	return func(s *stepSettings) { s.only = match }
}

// WithStepOptimizer sets a training step's own optimizer, as for a generator and its discriminator, with values under
// the scope name: several optimizers of a parameter are independent. GoMLX's own Adams ([optim.GoMLX]) share their
// moments.
func WithStepOptimizer(name string, o *optim.Optimizer) StepOption {
	return func(s *stepSettings) { s.scope, s.rule = name, o }
}

// RunningAverages reports the mean since the last reset of each loss and each value of [AddMetric] as avg_<name>.
func RunningAverages() StepOption { return func(s *stepSettings) { s.averages = true } }

// OutputsAlone restricts a step's reports to outputs. The step then accepts unmarked padding.
func OutputsAlone() StepOption { return func(s *stepSettings) { s.outputsAlone = true } }

// LearningRates has a training step report its rate ([State.RatesInForce]) as the metric learning_rate, or
// learning_rate_<group>, or none without a single rate. Between updates of optim.Accumulate it is the next update's.
func LearningRates() StepOption { return func(s *stepSettings) { s.rates = true } }

// MaxShapes limits the shapes of batches for which a step is compiled on one state, default 100. Beyond it a training
// step returns [ErrShapes]; other steps free their least recently used program.
func MaxShapes(n int) StepOption { return func(s *stepSettings) { s.shapes = n } }

// TrainStep makes a step that differentiates the sum of its losses, at least one, and updates the trainable variables
// in use.
func TrainStep(build Build, options ...StepOption) *Stepper {
	return newStepper(stepSettings{name: "train step", train: true, build: build}, options)
}

// TestStep makes a step that does not train. Values set by Variable.SetNodeValue are kept.
func TestStep(build Build, options ...StepOption) *Stepper {
	return newStepper(stepSettings{name: "test step", build: build}, options)
}

func newStepper(s stepSettings, options []StepOption) *Stepper {
	if s.build == nil {
		s.build = func(*Builder) { panic(errors.New("the function that builds the step is nil")) }
	}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	madeSteps.Store(s.id())
	return &Stepper{stepSettings: s}
}

// id: inlining gives a function literal several names.
func (s *stepSettings) id() (id stepID, place string) {
	pc := reflect.ValueOf(s.build).Pointer()
	function := runtime.FuncForPC(pc)
	file, line := function.FileLine(pc)
	return stepID{Train: s.train, By: s.scope, Function: function.Name()}, fmt.Sprint(file, ":", line)
}

// Measures reports that the step trains nothing. A run of such steps alone reads all examples.
func (s *Stepper) Measures() bool { return s == nil || !s.train }

// String is "train step" or "test step".
func (s *Stepper) String() string {
	if s.none() {
		return "step"
	}
	return s.name
}

func (s *Stepper) none() bool { return s == nil || s.build == nil }

var errNoStep = errors.New("the step is nil: make one with TrainStep or TestStep")

var errNoState = errors.New("the state is nil: make one with New")

func (s *Stepper) takes(state *State) error {
	switch {
	case s.none():
		return errNoStep
	case state == nil:
		return errNoState
	}
	return nil
}

// Step runs one step, changes the state in place and returns it. The first call for a state or a shape of batch
// compiles. Logs stay on the device until a value is read. StepBlock may run another program, which may differ in the
// last bit.
func (s *Stepper) Step(ctx context.Context, state *State, batch data.Batch) (*State, loop.Logs, error) {
	if err := shield.Context(ctx); err != nil {
		return state, loop.Logs{}, s.failed(err)
	}
	logs, err := s.run(ctx, state, nil, []data.Batch{batch}, 1)
	if err != nil {
		return state, loop.Logs{}, s.failed(err)
	}
	return state, logs[0], nil
}

func (s *Stepper) failed(err error) error {
	return &graphs.Failure{Package: "managed", What: s.String(), Err: err}
}

// BlockSize returns how many batches a loop may pass to StepBlock.
func (s *Stepper) BlockSize() int { return blocks.Steps }

// StepBlock runs a step per batch, several per program run if the step is small. Results are bit-identical for every
// division into blocks. It ignores ctx's cancellation: the batches are already taken from the data.
func (s *Stepper) StepBlock(ctx context.Context, state *State, batches []data.Batch) (*State, []loop.Logs, error) {
	logs, err := s.inBlocks(ctx, state, nil, batches)
	return state, logs, err
}

// Await waits for the state's started steps and returns an error not returned before.
func (s *Stepper) Await(_ context.Context, state *State) error {
	if state == nil {
		return nil
	}
	if err := state.values.NotWithin(); err != nil {
		return s.failed(err)
	}
	if state.values.EnterValues(context.Background(), false) != nil {
		return nil
	}
	defer state.values.LeaveValues(false)
	if err := state.values.Last.Follow(nil); err != nil {
		return s.failed(err)
	}
	return nil
}

// Entries returns the full names of the logged values ("losses.loss") of the last compiled program.
func (s *Stepper) Entries() (paths []string) {
	if s.none() {
		return nil
	}
	s.cache.each(func(c *compiled) {
		paths = nil
		for _, l := range slices.Concat(c.layout, c.wholes) {
			paths = append(paths, loop.Entry{Collection: l.collection, Name: l.name}.Path())
		}
	})
	return paths
}

// StableHLO returns the compiled programs.
func (s *Stepper) StableHLO() []string {
	programs := []string{}
	if s.none() {
		return programs
	}
	s.cache.each(func(c *compiled) { programs = append(programs, c.program.StableHLO()) })
	return programs
}

// CompileTime returns the plugin's total compilation time.
func (s *Stepper) CompileTime() (sum time.Duration) {
	if s.none() {
		return 0
	}
	s.cache.each(func(c *compiled) { sum += c.program.CompileTime() })
	return sum
}

// Close waits for running steps and frees the programs. The step stays usable and compiles again.
func (s *Stepper) Close() (err error) {
	if s.none() {
		return nil
	}
	s.cache.each(func(c *compiled) { err = cmp.Or(err, c.state.values.NotWithin()) })
	if err != nil {
		return fmt.Errorf("managed: close the %s: %w", s.name, err)
	}
	s.closing.Lock() // a second Close waits for the first
	defer s.closing.Unlock()
	return gate.Once(s.cache.drop(func(*compiled) bool { return true }, (*compiled).giveUp))
}
