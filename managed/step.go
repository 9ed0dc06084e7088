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

// Stepper is a step that runs on any number of states. It compiles for each state and each shape of batch, and keeps
// the programs until Close. It is safe for concurrent use; its build function is called by one goroutine at a time, and
// must not use the state that the step is built for ([ErrBusy]). [State] lists which uses may run at the same time.
type Stepper struct {
	stepSettings
	building sync.Mutex  // serializes builds of this step
	closing  sync.Mutex  // serializes Close
	changing atomic.Bool // one of its programs changes a state
	cache    cache
}

// stepSettings do not change after the step is made.
type stepSettings struct {
	name         string
	train        bool
	build        Build
	only         func(name string) bool // nil: all
	rule         *optim.Optimizer       // nil: the state's
	scope        string                 // scope of the rule's variables
	averages     bool
	rates        bool
	outputsAlone bool
	shapes       int // limit of batch shapes; 0: mostShapes
}

var (
	_ loop.Stepper[*State, data.Batch] = (*Stepper)(nil)
	_ abilities.Awaiter[*State]        = (*Stepper)(nil)
	_ abilities.Evaluator[*State]      = (*Stepper)(nil)
)

// StepOption is a setting of a step.
type StepOption func(*stepSettings)

// TrainOnly restricts the updates of a training step to trainable variables whose full names
// ("/generator/dense/weights") match.
func TrainOnly(match func(name string) bool) StepOption {
	return func(s *stepSettings) { s.only = match }
}

// WithStepOptimizer gives a training step its own optimizer instead of the state's, as for a generator and its
// discriminator. The optimizer keeps its learning rate and step count under a scope of the given name. Two Adams that
// train the same parameter share its moments, because GoMLX names moments after the parameter.
func WithStepOptimizer(name string, o *optim.Optimizer) StepOption {
	return func(s *stepSettings) { s.scope, s.rule = name, o }
}

// RunningAverages adds, for each loss and each value of [AddMetric], its mean since the last reset as avg_<name>. See
// [Builder.Mean].
func RunningAverages() StepOption { return func(s *stepSettings) { s.averages = true } }

// OutputsAlone restricts the reports of a step to its outputs: losses and metrics, also those that layers add by
// [AddLoss] or [AddMetric], are left out. Such a step accepts a batch with padding that no mask marks.
func OutputsAlone() StepOption { return func(s *stepSettings) { s.outputsAlone = true } }

// LearningRates has a training step report its learning rate as the metric learning_rate: the optimizer's rate times
// the factors at the end of an optim chain. With optim.Groups that scale, each group is reported as
// learning_rate_<group>. A chain that scales elsewhere has no single rate, and none is reported.
func LearningRates() StepOption { return func(s *stepSettings) { s.rates = true } }

// MaxShapes limits for how many shapes of batches a step is compiled on one state, default 100. Beyond it a training
// step returns [ErrShapes]; any other step frees its least recently used program.
func MaxShapes(n int) StepOption { return func(s *stepSettings) { s.shapes = n } }

// TrainStep makes a step that differentiates the sum of its losses and updates the trainable variables that it uses,
// with the state's optimizer. The step must report at least one loss.
func TrainStep(build Build, options ...StepOption) *Stepper {
	return newStepper(stepSettings{name: "train step", train: true, build: build}, options)
}

// TestStep makes a step that computes and reports without training. Values that its function sets by
// Variable.SetNodeValue are kept.
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

// String returns "train step" or "test step".
func (s *Stepper) String() string {
	if s == nil {
		return "step"
	}
	return s.name
}

var errNoStep = errors.New("the step is nil: make one with TrainStep or TestStep")

// Step runs one step and changes the state in place; it returns the same state. Its first call for a state or a shape
// of batch compiles. The logs stay on the device until a value is read.
//
// A loop calls StepBlock instead. For small steps that runs a different program, whose results may differ in the last
// bit.
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

// failed names this step in err. A loop that names the step itself takes the inner error only.
func (s *Stepper) failed(err error) error {
	return &graphs.Failure{Package: "managed", What: s.String(), Err: err}
}

// BlockSize returns how many batches a loop may pass to StepBlock.
func (s *Stepper) BlockSize() int { return blocks.Steps }

// StepBlock runs one step for each batch, several per program run where the model and the batches are small (see
// [loop.Stepper] and [strategies.Program]). The results are bit-identical for every division into blocks. It ignores
// cancellation of ctx, because the batches are already taken from the data.
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

// Await waits for the started steps of the state and returns the error of a failed one, unless it was returned before.
// See [loop.Stepper] and [State.Wait].
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

// Entries returns the full names of the logged values, such as "losses.loss", for the last compiled program; nil if
// there is none.
func (s *Stepper) Entries() (paths []string) {
	s.cache.each(func(c *compiled) {
		paths = nil
		for _, l := range slices.Concat(c.layout, c.wholes) {
			paths = append(paths, loop.Entry{Collection: l.collection, Name: l.name}.Path())
		}
	})
	return paths
}

// StableHLO returns the compiled programs, one for each state and each shape of batch.
func (s *Stepper) StableHLO() []string {
	programs := []string{}
	s.cache.each(func(c *compiled) { programs = append(programs, c.program.StableHLO()) })
	return programs
}

// CompileTime returns the total time that the plugin took to compile the step's programs.
func (s *Stepper) CompileTime() (sum time.Duration) {
	s.cache.each(func(c *compiled) { sum += c.program.CompileTime() })
	return sum
}

// Close waits for running steps and frees the compiled programs. The step stays usable and compiles again. Within a
// build function Close returns [ErrBusy].
func (s *Stepper) Close() (err error) {
	s.cache.each(func(c *compiled) { err = cmp.Or(err, c.state.values.NotWithin()) })
	if err != nil {
		return fmt.Errorf("managed: close the %s: %w", s.name, err)
	}
	s.closing.Lock() // a second Close returns after the first has freed
	defer s.closing.Unlock()
	return gate.Once(s.cache.drop(func(*compiled) bool { return true }, (*compiled).giveUp))
}
