package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// State is a model's variables where a strategy keeps them, with the optimizer that changes them. Steps change it in
// place, each as a whole or not at all: after an error the values of before the step are still there, unless the
// device failed in the middle of one; the error then wraps [strategies.ErrStateLost].
//
// It may be used by any number of goroutines. What only reads (a value, a snapshot, a checkpoint, a step that changes
// nothing, as a prediction) goes on beside others that read; what changes something (a training step, SetValue, MoveTo,
// Restore) waits until it has the state alone, between two steps, and others wait for it, each in its turn. A wait ends
// with its context. A state is trained by one at a time: a training step that comes while another one is being made
// is [ErrBusy]. Close waits for what goes on, and later use is [ErrClosed].
//
// What the function of a step asks of the state for which it is called is [ErrBusy] as well, also where nobody would
// have to wait, and under each strategy; only what gives no error (Names, Strategy, Parameters, Summary, Settings,
// CompilingSince) answers. Other states can be asked. That is known by the goroutine: a function that waits for another
// goroutine, which asks the state, waits for ever, unless the call has a context that ends.
//
// To test, or to predict for several batches, beside a training there is [State.View]: it has metrics of its own, and
// one set of values for all of its steps.
type State struct {
	values   store.Store // where its values are, and who uses them next to whom
	model    definition  // what steps are built from
	saved    saved       // where its variables come from, for checkpoints
	settings settings    // what it was trained with
	programs []dumped    // what steps were compiled to for it
	compiles compiles    // whether a step is being compiled for it
	training atomic.Bool // a training step is being made
	// evaluations are the steps whose metrics are gathered apart, the newest last. The gate of the values guards them.
	evaluations []evaluating
}

// Option is a setting of a new state.
type Option func(*State) error

// WithOptimizer sets what [TrainStep] updates the parameters with.
func WithOptimizer(o *optim.Optimizer) Option {
	return func(s *State) error {
		if o == nil {
			return errors.New("the optimizer is nil, expected one as optim.New or optim.GoMLX makes it")
		}
		s.model.optimizer, s.model.startRate = o, nil
		return nil
	}
}

// WithSeed makes the initial parameters and all random numbers of steps a function of the seed. Without it the seed
// is 0, so that a run can be repeated unless somebody asks for something else.
func WithSeed(seed int64) Option {
	return func(s *State) error {
		s.settings.seed = seed
		return s.model.store.SetRNGStateFromSeed(seed)
	}
}

// New makes an empty state. Its variables come into being when the first step is compiled.
func New(strategy strategies.Strategy, options ...Option) (*State, error) {
	if err := usable(strategy, "strategies.Jit(runtime)"); err != nil {
		return nil, fmt.Errorf("managed: new state: %w", err)
	}
	s := blank(strategy)
	for _, o := range slices.Concat([]Option{WithSeed(0)}, options) {
		if o == nil {
			continue
		}
		if err := o(s); err != nil {
			return nil, fmt.Errorf("managed: new state: %w", err)
		}
	}
	s.warnOfScale()
	return s, nil
}

// usable refuses a strategy that is nil, or has no runtime.
func usable(strategy strategies.Strategy, suchAs string) error {
	switch {
	case strategy == nil:
		return errors.New("no strategy given, such as " + suchAs)
	case strategy.Runtime() == nil:
		return fmt.Errorf("the strategy %v was made with a runtime that is nil: open one with xla.Open", strategy)
	}
	return nil
}

// blank is a state without variables.
func blank(strategy strategies.Strategy) *State {
	s := &State{
		model: definition{store: model.NewStore(), resets: map[*model.Variable]metrics.Accumulator{},
			ofOptimizer: map[*model.Variable]bool{}, numbers: map[string][]string{}},
		saved:    saved{origins: map[string]origin{}},
		settings: settings{rules: map[string]*optim.Optimizer{}},
	}
	s.values.Init(strategy)
	return s
}

// Strategy is how the state's steps run.
func (s *State) Strategy() strategies.Strategy {
	defer s.values.PeekValues()()
	return s.values.Strategy()
}

// Names lists the state's variables by their full names ("/conv_0/weights"), in the order in which steps came to
// need them. After them come, sorted, those of a restored checkpoint that no step has needed yet.
func (s *State) Names() []string {
	defer s.values.PeekValues()()
	return s.names()
}

func (s *State) names() []string {
	return append(s.values.Names(), slices.Sorted(maps.Keys(s.pending()))...)
}

// Value copies a variable to the host by its full name, when the steps that were begun are over.
func (s *State) Value(name string) (*tensors.Tensor, error) {
	values, err := s.Values(name)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// Values copies several variables as they are at one moment, between two steps: see [State.Value].
func (s *State) Values(names ...string) ([]*tensors.Tensor, error) {
	done, err := s.values.Read(context.Background())
	if err != nil {
		return nil, fmt.Errorf("managed: value of %s: %w", quoted(names), err)
	}
	defer done()
	values := make([]*tensors.Tensor, len(names))
	for i, name := range names {
		at, element := s.values.Find(name)
		switch {
		case at >= 0:
			if values[i], err = s.values.Fetch(at); err == nil && element >= 0 {
				values[i], err = elementOf(values[i], element)
			}
			if err != nil {
				return nil, fmt.Errorf("managed: value of %q: %w", name, graphs.Inner(err))
			}
		case s.pending()[name] != nil:
			if values[i], err = s.model.given.Late.CopyOf(s.pending()[name]); err != nil {
				return nil, fmt.Errorf("managed: value of %q: %w", name, err)
			}
		case len(s.names()) == 0:
			return nil, fmt.Errorf("managed: the state has no variable %q: it has none before its first step", name)
		default:
			return nil, fmt.Errorf("managed: the state has no variable %q; it has %q", name, s.names())
		}
	}
	return values, nil
}

// quoted lists names for a message.
func quoted(names []string) string {
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(text, ", ")
}

// Parameters counts the trainable numbers of the state.
func (s *State) Parameters() int {
	defer s.values.PeekAll()()
	n := 0
	for i, v := range s.values.Variables() {
		if v.Trainable {
			n += s.values.Shape(i).Size()
		}
	}
	for name, t := range s.pending() {
		if s.saved.restored.origins[name].Trainable {
			n += t.Shape().Size()
		}
	}
	return n
}

// Wait waits until the steps that were begun are over: a step may go on on the device when its method has returned,
// while the host makes the next batch. Whatever looks at the values waits by itself. The error of a step that failed on
// the device comes here, or with the next step; it wraps [strategies.ErrStateLost].
func (s *State) Wait() error {
	done, err := s.values.Read(context.Background())
	if err != nil {
		return fmt.Errorf("managed: wait: %w", err)
	}
	done()
	return nil
}

// Close waits for what goes on, a step, say, though not for a whole training, and gives the state's values up. Values
// already logged stay readable. A second Close does nothing, and returns after the first. From the function of a step
// it is [ErrBusy].
func (s *State) Close() error {
	if err := s.values.NotWithin(); err != nil {
		return fmt.Errorf("managed: close: %w", err)
	}
	return s.values.Close(func() error {
		var errs []error
		for _, e := range s.evaluations {
			errs = append(errs, e.view.forget())
		}
		return errors.Join(errs...)
	})
}

var _ abilities.Queued = (*State)(nil)

var _ interface {
	Job() loop.Job
	Snapshot(ctx context.Context) (loop.Snapshot, error)
} = (*State)(nil)

// OnRead has the state call a function before it is read or changed from outside, until remove: a loop gives one that
// makes the steps whose batches wait ([loop.Stepper]). An error of the function is returned in place of a value. Before
// OnRead adds the function, it calls those that are there.
//
// What has no error to return calls none: the names, the shapes and the settings of a state.
func (s *State) OnRead(f func() error) (remove func(), err error) {
	if s == nil { // the first step says so
		return func() {}, nil
	}
	return s.values.OnRead(f)
}
