package managed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// State is a model's variables where a strategy keeps them, with the optimizer that changes them. Steps change it in
// place, each as a whole or not at all: after an error the values of before the step are still there, unless the
// device failed in the middle of one; the error then wraps [strategies.ErrStateLost]. It is for one goroutine at a
// time.
type State struct {
	strategy  strategies.Strategy
	store     *model.Store
	optimizer Optimizer
	policy    *optim.Policy // nil: types are what layers make them
	// values holds the variables in the order in which steps came to need them; index finds them.
	values []value
	index  map[*variable]int
	unread unread
	closed bool
	lost   error // why the values are gone
	// running is the last run of a step, which may go on; nil if it is known to be over.
	running strategies.Running
	// resets are the variables of metrics; ofOptimizer are those that optimizers brought in.
	resets      map[*variable]metrics.Accumulator
	ofOptimizer map[*variable]bool
	// given are values for variables to come, nil if the state was given none; drawn says which may do without.
	given map[string]*Tensor
	drawn func(name string) bool
	saved saved
	// moves counts the moves to other strategies: what was compiled before the last is of no use.
	moves int
	// resident are the sets that the strategy has, field by field.
	resident map[*data.Resident][]strategies.Buffer
	configured
	// programs are those of the steps that were compiled for the state.
	programs []dumped
}

type value struct {
	variable *variable
	buffer   strategies.Buffer
}

// Option is a setting of a new state.
type Option func(*State) error

// WithOptimizer sets what [TrainStep] updates the parameters with.
func WithOptimizer(o Optimizer) Option {
	return func(s *State) error {
		if _, ok := o.(gradientOptimizer); !ok {
			return fmt.Errorf("optimizer %T cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)", o)
		}
		s.optimizer = o
		return nil
	}
}

// WithSeed makes the initial parameters and all random numbers of steps a function of the seed. Without it the seed
// is 0, so that a run can be repeated unless somebody asks for something else.
func WithSeed(seed int64) Option {
	return func(s *State) error {
		s.seed = seed
		return s.store.SetRNGStateFromSeed(seed)
	}
}

// New makes an empty state. Its variables come into being when the first step is compiled.
func New(strategy strategies.Strategy, options ...Option) (*State, error) {
	if strategy == nil {
		return nil, errors.New("managed: new state: no strategy given, such as strategies.Jit(runtime)")
	}
	s := blank(strategy)
	for _, o := range slices.Concat([]Option{WithSeed(0)}, options) {
		if err := o(s); err != nil {
			return nil, fmt.Errorf("managed: new state: %w", err)
		}
	}
	s.warnOfScale()
	return s, nil
}

// blank is a state without variables.
func blank(strategy strategies.Strategy) *State {
	return &State{strategy: strategy, store: model.NewStore(), index: map[*variable]int{},
		resets: map[*variable]metrics.Accumulator{}, ofOptimizer: map[*variable]bool{}}
}

// Strategy is how the state's steps run.
func (s *State) Strategy() strategies.Strategy { return s.strategy }

// Names lists the state's variables by their full names ("/conv_0/weights"), in the order in which steps came to
// need them.
func (s *State) Names() []string {
	names := make([]string, len(s.values))
	for i, v := range s.values {
		names[i] = v.variable.Path()
	}
	return names
}

// Value copies a variable to the host by its full name, when the steps that were begun are over.
func (s *State) Value(name string) (*Tensor, error) {
	if err := s.settled(); err != nil {
		return nil, fmt.Errorf("managed: value of %q: %w", name, err)
	}
	for _, v := range s.values {
		if v.variable.Path() == name {
			return s.strategy.Fetch(v.buffer)
		}
	}
	if len(s.values) == 0 {
		return nil, fmt.Errorf("managed: the state has no variable %q: it has none before its first step", name)
	}
	return nil, fmt.Errorf("managed: the state has no variable %q; it has %q", name, s.Names())
}

// Parameters counts the trainable numbers of the state.
func (s *State) Parameters() int {
	n := 0
	for _, v := range s.values {
		if v.variable.Trainable {
			n += v.variable.Shape().Size()
		}
	}
	return n
}

// Wait waits until the steps that were begun are over: a step may go on on the device when its method has returned, while
// the host makes the next batch. Whatever looks at the values waits by itself. The error of a step that failed on the
// device comes here, or with the next step; it wraps [strategies.ErrStateLost].
func (s *State) Wait() error {
	if err := s.settled(); err != nil {
		return fmt.Errorf("managed: wait: %w", err)
	}
	return nil
}

// settled waits for the last step, and tells whether the values are there.
func (s *State) settled() error {
	if err := s.follow(nil); err != nil {
		return err
	}
	return s.usable()
}

// usable tells whether the values are there, as far as that is known.
func (s *State) usable() error {
	if s.closed {
		return fmt.Errorf("the state: %w", ErrClosed)
	}
	if s.lost != nil {
		return fmt.Errorf("an earlier step failed: %w", s.lost)
	}
	return nil
}

// follow has another run take the place of the running one, which is waited for: with one run on the device and one behind
// it, the device always has work.
func (s *State) follow(next strategies.Running) error {
	last := s.running
	s.running = next
	if last == nil {
		return nil
	}
	err := last.Wait()
	if errors.Is(err, strategies.ErrStateLost) {
		s.lost = err
	}
	return err
}

// Close gives the state's values up. Values already logged stay readable. A second Close does nothing.
func (s *State) Close() error {
	if s.closed {
		return nil
	}
	errs := []error{s.follow(nil), s.unread.drain(0)}
	s.closed = true
	for i := range s.values {
		if s.lost == nil { // of lost values nobody can tell what is left to free
			errs = append(errs, s.strategy.Free(s.values[i].buffer))
		}
		s.values[i].buffer = nil
	}
	return errors.Join(append(errs, s.leaveSets())...)
}
