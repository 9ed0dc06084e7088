package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Stepper is a step that can run on any number of states: it is compiled for each state and each shape of batch that it
// meets, and keeps what it compiled until Close. It may be used by any number of goroutines; its function is called by
// one at a time, and cannot ask anything of the state that the step is built for ([State]). Who uses a state beside
// whom is said at [State].
type Stepper struct {
	stepSettings
	building sync.Mutex  // one build of the step at a time
	closing  sync.Mutex  // one Close at a time
	changing atomic.Bool // a program of it changes a state
	cache    cache
}

// stepSettings are what a step is made of. Nothing changes them once it is made.
type stepSettings struct {
	name     string
	train    bool
	build    Build
	only     func(name string) bool // nil: all
	rule     *optim.Optimizer       // nil: the state's
	scope    string                 // of what the rule keeps
	averages bool
	rates    bool
	// outputsAlone leaves out what is reported besides.
	outputsAlone bool
	shapes       int // the most shapes of batches; 0 is mostShapes
}

var (
	_ loop.Stepper[*State, data.Batch] = (*Stepper)(nil)
	_ abilities.Awaiter[*State]        = (*Stepper)(nil)
	_ abilities.Evaluator[*State]      = (*Stepper)(nil)
)

// StepOption is a setting of a step.
type StepOption func(*stepSettings)

// TrainOnly has a train step update those trainable variables alone whose full names ("/generator/dense/weights")
// match.
func TrainOnly(match func(name string) bool) StepOption {
	return func(s *stepSettings) { s.only = match }
}

// WithStepOptimizer has a train step update with another optimizer than the state's: several train steps on one state,
// as of a generator and its discriminator, each have their own. Its learning rate and its count of steps are under the
// scope of that name. Two Adams that train the same parameter share its moments: GoMLX keeps them by the parameter's
// name.
func WithStepOptimizer(name string, o *optim.Optimizer) StepOption {
	return func(s *stepSettings) { s.scope, s.rule = name, o }
}

// RunningAverages has a step report, for each loss and each figure of [AddMetric], its mean since the last reset, as
// avg_<name>; see [Builder.Mean].
func RunningAverages() StepOption { return func(s *stepSettings) { s.averages = true } }

// OutputsAlone has a step report no losses and no metrics, but outputs: what the layers of a model report besides, by
// [AddLoss] and its like, is left out. So it takes a batch with rows that no mask marks as padding.
func OutputsAlone() StepOption { return func(s *stepSettings) { s.outputsAlone = true } }

// LearningRates has a training step report the rate that it is made with as the metric learning_rate: the optimizer's,
// times what scales the updates at the end of a chain of package optim; where optim.Groups scale, that of each group as
// learning_rate_<group>. A chain that scales elsewhere has no such rate, and reports none.
func LearningRates() StepOption { return func(s *stepSettings) { s.rates = true } }

// MaxShapes is for how many shapes of batches a step is compiled on one state, 100 if it is not said. With one more a
// training step is refused ([ErrShapes]): each shape takes a compilation, and a training that meets so many is mostly a
// mistake. Any other step gives up the program that it used longest ago.
func MaxShapes(n int) StepOption { return func(s *stepSettings) { s.shapes = n } }

// TrainStep is a step that reports at least one loss; the sum of its losses is differentiated and the state's
// optimizer updates the trainable variables that the step uses.
func TrainStep(build Build, options ...StepOption) *Stepper {
	return newStepper(stepSettings{name: "train step", train: true, build: build}, options)
}

// TestStep is a step that computes and reports. It has no optimizer, and so trains nothing; a value that its function
// sets by Variable.SetNodeValue is kept.
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

// Measures reports that the step trains nothing. A run of such steps alone reads all examples of a set's batches: see
// [data.Set.Batches].
func (s *Stepper) Measures() bool { return !s.train }

// String is "train step" or "test step".
func (s *Stepper) String() string {
	if s == nil {
		return "step"
	}
	return s.name
}

var errNoStep = errors.New("the step is nil: make one with TrainStep or TestStep")

// Step makes one step and changes the state in place; it returns the same state. The logs are read from the device
// when somebody asks for a value. The first step on a state, and the first with a new shape of batch, compiles.
//
// A loop calls StepBlock instead, whose program is another one where steps are small: the last bit may differ.
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

// failed says that it was this step; a loop, which says so too, takes the point alone.
func (s *Stepper) failed(err error) error {
	return &graphs.Failure{Package: "managed", What: s.String(), Err: err}
}

// BlockSize is how many steps the loop may give to StepBlock.
func (s *Stepper) BlockSize() int { return blocks.Steps }

// StepBlock makes the steps of several batches, as many as fit in one program run: see [loop.Stepper]. How many
// that are is a matter of the model's and the batches' size (see [strategies.Program]); the steps compute the same bits
// however they are divided. A context that ends is not heeded: the batches are taken from the data, and a run is to end
// where that is.
func (s *Stepper) StepBlock(ctx context.Context, state *State, batches []data.Batch) (*State, []loop.Logs, error) {
	logs, err := s.inBlocks(ctx, state, nil, batches)
	return state, logs, err
}

func (s *Stepper) inBlocks(ctx context.Context, state *State, view *View, batches []data.Batch) ([]loop.Logs, error) {
	ctx = context.WithoutCancel(ctx)
	all := make([]loop.Logs, 0, len(batches))
	for len(batches) > 0 {
		logs, err := s.run(ctx, state, view, batches, blocks.Steps)
		if err != nil {
			return all, s.failed(err)
		}
		all, batches = append(all, logs...), batches[len(logs):]
	}
	return all, nil
}

// Await waits for the steps of the state that were begun, and gives the error of one that failed, unless it was given
// before: see [loop.Stepper] and [State.Wait].
func (s *Stepper) Await(_ context.Context, state *State) error {
	if state == nil {
		return nil
	}
	if err := state.values.NotWithin(); err != nil {
		return s.failed(err)
	}
	if state.values.EnterValues(context.Background(), false) != nil { // closed
		return nil
	}
	defer state.values.LeaveValues(false)
	if err := state.values.Last.Follow(nil); err != nil {
		return s.failed(err)
	}
	return nil
}

// Entries are the full names of what the step logs, as "losses.loss", as it was compiled last; nil before.
func (s *Stepper) Entries() (paths []string) {
	s.cache.each(func(c *compiled) {
		paths = nil
		for _, l := range slices.Concat(c.layout, c.wholes) {
			paths = append(paths, loop.Entry{Collection: l.collection, Name: l.name}.Path())
		}
	})
	return paths
}

// StableHLO gives the programs that the step was compiled to, one for each state and each shape of batch that it met.
func (s *Stepper) StableHLO() []string {
	programs := []string{}
	s.cache.each(func(c *compiled) { programs = append(programs, c.program.StableHLO()) })
	return programs
}

// CompileTime is how long the plugin took to compile them.
func (s *Stepper) CompileTime() (sum time.Duration) {
	s.cache.each(func(c *compiled) { sum += c.program.CompileTime() })
	return sum
}

// Close waits for the steps that are being made and frees the compiled programs; the step can still be used and
// compiles again. From the function of a step it is [ErrBusy].
func (s *Stepper) Close() (err error) {
	s.cache.each(func(c *compiled) { err = cmp.Or(err, c.state.values.NotWithin()) })
	if err != nil {
		return fmt.Errorf("managed: close the %s: %w", s.name, err)
	}
	s.closing.Lock() // a second Close returns after the first has freed
	defer s.closing.Unlock()
	return gate.Once(s.cache.drop(func(*compiled) bool { return true }, (*compiled).giveUp))
}
