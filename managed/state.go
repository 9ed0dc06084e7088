package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gomlx/gomlx/core/graph"
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

// State holds a model's variables where a strategy keeps them, and the optimizer. A step changes it in place,
// completely or not at all: after an error the previous values remain. If the device failed during a step, the values
// are lost and the error wraps [strategies.ErrStateLost].
//
// A State is safe for concurrent use:
//   - Readers share it: values, snapshots, checkpoints, steps that change nothing.
//   - Changes (a training step, SetValue, MoveTo, Restore) wait for exclusive access, until their context ends.
//   - A second simultaneous training step returns [xla.ErrBusy].
//   - Close waits for running uses; later ones return [ErrClosed].
//
// Methods without a context wait for started steps, not for a training; LearningRate, RatesInForce, SetLearningRate,
// SetValue, Summary, Parameters, Settings and DumpXLA also for a build or compilation of a step on the state.
//
// A build function that uses the state of its build gets [xla.ErrBusy], except from methods without an error result.
// The check is by goroutine: waiting for another goroutine that uses the state may block forever.
type State struct {
	values   store.Store
	model    definition
	saved    saved
	settings settings
	programs []dumped
	compiles compiles
	training atomic.Bool
	// evaluations have the newest last; the value gate guards them.
	evaluations []evaluating
	gathering   gathering
}

type dumped struct{ step, text string }

// gathering has each metric's step. Another step's takeover makes the earlier one's run an error: it would mix both.
type gathering struct {
	claims  int
	by      map[int]int // claims of the steps, by store index
	changes int         // of by
}

// Option is a setting of [New].
type Option func(*State) error

// WithOptimizer sets the optimizer of [TrainStep].
func WithOptimizer(o *optim.Optimizer) Option {
	return func(s *State) error {
		if o == nil {
			return errors.New("the optimizer is nil, expected one made by optim.New or optim.GoMLX")
		}
		s.model.optimizer, s.model.startRate = o, nil
		return nil
	}
}

// WithSeed sets the seed of initial parameters and of random numbers in steps, default 0.
func WithSeed(seed int64) Option {
	return func(s *State) error {
		s.settings.seed = seed
		return s.model.store.SetRNGStateFromSeed(seed)
	}
}

// New returns an empty state. Steps create variables when they are first compiled.
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

func (s *State) warnOfScale() {
	if s.model.policy == nil || s.model.optimizer == nil || !s.model.policy.NeedsLossScale() || s.model.optimizer.ScalesLoss() {
		return
	}
	s.values.Strategy().Runtime().Logger().Warn(fmt.Sprintf("managed: policy %s: gradients below 6e-8 vanish: "+
		"put an optim.LossScale into the optimizer's chain", s.model.policy))
}

func usable(strategy strategies.Strategy, suchAs string) error {
	switch {
	case strategy == nil:
		return errors.New("no strategy given, such as " + suchAs)
	case strategy.Runtime() == nil:
		return fmt.Errorf("the strategy %v was made with a runtime that is nil: open one with xla.Open", strategy)
	}
	return nil
}

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

func (s *State) Strategy() strategies.Strategy {
	defer s.values.PeekValues()()
	return s.values.Strategy()
}

// Names returns the full names of the variables ("/conv_0/weights") in creation order, then, sorted, of restored values
// not yet used.
func (s *State) Names() []string {
	defer s.values.PeekValues()()
	return s.names()
}

func (s *State) names() []string {
	return append(s.values.Names(), slices.Sorted(maps.Keys(s.pending()))...)
}

// Value waits for started steps and copies the variable of this full name to the host.
func (s *State) Value(name string) (*tensors.Tensor, error) {
	values, err := s.Values(name)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// Values copies several variables at the same moment.
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

func quoted(names []string) string {
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(text, ", ")
}

// Parameters is the number of trainable scalars.
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

func (s *State) pending() map[string]*tensors.Tensor {
	if r := s.saved.restored; r != nil && r.from == nil {
		return s.model.given.Tensors
	}
	return nil
}

// Wait waits for started steps, which may run on after their method has returned. Wait or the next step returns their
// error.
func (s *State) Wait() error {
	done, err := s.values.Read(context.Background())
	if err != nil {
		return fmt.Errorf("managed: wait: %w", err)
	}
	done()
	return nil
}

// Close waits for running uses, like one step but not a whole training, and frees the values. Logged values stay
// readable. A second Close waits for the first.
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

// OnRead has the state call f before it is read or changed from outside, until remove. A loop's f runs the collected
// batches' steps. The reader gets f's error. OnRead calls earlier functions first. Methods without an error result
// call none.
func (s *State) OnRead(f func() error) (remove func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	return s.values.OnRead(f)
}

type definition struct {
	store       *model.Store
	optimizer   *optim.Optimizer
	startRate   *float64 // set early; nil: the optimizer's own
	policy      *optim.Policy
	resets      map[*model.Variable]metrics.Accumulator
	ofOptimizer map[*model.Variable]bool
	numbers     map[string][]string
	given       store.Given
}

func (d *definition) slots(g *graph.Graph) (used []*model.Variable, built strategies.Built) {
	for v := range d.store.IterVariables() {
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
