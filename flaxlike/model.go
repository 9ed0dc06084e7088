package flaxlike

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Model is a network with its losses, metrics, optimizer and training state. It changes in place.
//
// Any number of goroutines may call its methods. Readers (Predict, Evaluate, Save, Summary, Export) run concurrently
// with each other and a Fit. Changes like Load wait for a step's end. A second concurrent Fit is a xla.ErrBusy.
// Evaluate and Predict use the weights of their start; a concurrent Fit copies them for each. Close waits for the
// current step; then a running Fit and later calls return managed.ErrClosed.
type Model struct {
	state                *managed.State
	network              nn.Layer
	set                  settings
	train, test, predict *managed.Stepper
	closing              *sync.Once
	giveBack             func() error  // of the process's runtime; nil with a strategy
	view                 *managed.View // for tests and predictions; nil uses the state
	fitting              *atomic.Bool
	seen                 *seen
}

// Init creates the variables for batches like this one, and changes no value.
func (m *Model) Init(ctx context.Context, batch data.Batch) error {
	return m.init(ctx, func() ([]strategies.Input, error) {
		batch, err := m.enter(batch, false)
		if err != nil {
			return nil, err
		}
		host, err := batch.OnHost()
		if err != nil {
			return nil, err
		}
		return strategies.Inputs(host)
	})
}

func (m *Model) init(ctx context.Context, inputs func() ([]strategies.Input, error)) error {
	of, err := inputs()
	if err == nil {
		err = m.predict.Build(ctx, m.state, of)
	}
	if err != nil {
		return fmt.Errorf("flaxlike: init: %w", graphs.Inner(err))
	}
	return nil
}

// Close frees the state, the programs, and a runtime that New opened if no other model uses it. Close within a step's
// function is an xla.ErrBusy.
func (m *Model) Close() error {
	err := m.state.Close()
	if errors.Is(err, xla.ErrBusy) {
		return err
	}
	m.closing.Do(func() {
		err = errors.Join(err, m.train.Close(), m.test.Close(), m.predict.Close())
		if m.giveBack != nil {
			err = errors.Join(err, m.giveBack())
		}
	})
	return gate.Once(err)
}

// Preparation returns that of [WithPreparation] or the file of [Open], or nil.
func (m *Model) Preparation() *tables.Preparation { return m.set.preparation }

// Names are the full names of all variables, like "/model/0/kernel", including the optimizer's and the metrics'.
func (m *Model) Names() []string { return m.state.Names() }

// Value copies a variable to the host by its full name, as managed.State.Value.
func (m *Model) Value(name string) (*tensors.Tensor, error) { return m.state.Value(name) }

// SetValue sets a variable by its full name, as managed.State.SetValue. It makes a calibration and thresholds outdated
// ([ErrOutdated]).
func (m *Model) SetValue(name string, t *tensors.Tensor) error {
	return m.change(func() error { return m.state.SetValue(name, t) })
}

// change counts before the change for concurrent predictions, after it for a calibration that began earlier.
func (m *Model) change(f func() error) error {
	m.seen.changes.Add(1)
	defer m.seen.changes.Add(1)
	m.seen.setOrigin(origin{run: -1})
	return f()
}

func (m *Model) built() ([]variable, error) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if len(m.seen.variables) == 0 {
		return nil, fmt.Errorf("%w: call Init with a batch of the shapes to come", ErrNotBuilt)
	}
	return m.seen.variables, nil
}

type variable struct {
	name      string
	shape     shapes.Shape
	trainable bool
}

func (m *Model) inputs() []Input {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	return inputsOf(m.seen.described)
}

func (m *Model) noTraining() error {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if m.seen.optimizer != nil {
		return nil
	}
	return m.set.noTraining
}

// With set, the set is checked once, up to looked bounds. means logs running means. part: the set may lack classes.
type step struct {
	of     *managed.Stepper
	means  bool
	set    *data.Set
	looked *int
	part   bool
	stream *stream
}

type evaluation struct {
	loop.Evaluation[*Model, data.Batch]
	step step
}

type expected struct {
	entries []string
	tests   map[string]data.Batch
	all     []evaluation
}

func (e *expected) wait(entries []string) (err error) {
	if len(entries) == 0 {
		return nil
	}
	if e.entries == nil {
		for _, t := range e.all {
			if e.tests[t.Name], err = data.Peek(t.Data.From(0)); err != nil {
				return err
			}
		}
	}
	e.entries = append(e.entries, entries...)
	return nil
}

type fitted[T any] struct {
	values []T
	at     int64
}

// origin is the weights' step of a run, or a checkpoint of it; run is -1 for others.
type origin struct {
	run, step      int64
	saved, carried bool // carried: the file of Open
}

type seen struct {
	mu        sync.Mutex // for all fields; slices are replaced, not changed
	whole     *data.Resident
	variables []variable
	layers    []layerRow
	settings  map[string]string
	arrows    []Arrow
	odds      map[string]odds
	widths    map[string]int
	optimizer *optim.Optimizer
	bounds    []bound
	weighed   []string
	looked    int
	built     map[*managed.Stepper]bool
	expected  *expected
	inputs    []described // of the last build
	described []described
	card      Card
	fitted    figures
	evaluated figures

	labels       map[string]string
	names        map[string][]string // of classes in the first set of Fit, by output
	calibrations map[string]fitted[decision.Calibration]
	thresholds   map[string]fitted[float64]
	run, made    int64
	origin       origin
	changes      atomic.Int64
}

func (s *seen) take(r bound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.bounds, func(e bound) bool {
		same := e
		same.low, same.high, same.weights, same.why, same.hint = r.low, r.high, r.weights, r.why, r.hint
		return same == r && e.low >= r.low && e.high <= r.high && (e.weights == "" || e.weights == r.weights)
	}) {
		s.bounds = append(slices.Clip(s.bounds), r)
	}
}

func (s *seen) allBounds() []bound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounds
}

func (s *seen) noteWeighed(field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.weighed, field) {
		s.weighed = append(slices.Clip(s.weighed), field)
	}
}

// calibrate requires s.mu.
func (s *seen) calibrate(output string, values []decision.Calibration, at int64) {
	s.calibrations = maps.Clone(s.calibrations)
	if s.calibrations == nil {
		s.calibrations = map[string]fitted[decision.Calibration]{}
	}
	if delete(s.calibrations, output); len(values) > 0 {
		s.calibrations[output] = fitted[decision.Calibration]{slices.Clone(values), at}
	}
	if t, ok := s.thresholds[output]; ok {
		s.thresholds = maps.Clone(s.thresholds)
		t.at = -1
		s.thresholds[output] = t
	}
}

func (s *seen) setThresholds(output string, values []float64, at int64) {
	s.thresholds = maps.Clone(s.thresholds)
	if s.thresholds == nil {
		s.thresholds = map[string]fitted[float64]{}
	}
	if delete(s.thresholds, output); len(values) > 0 {
		s.thresholds[output] = fitted[float64]{slices.Clone(values), at}
	}
}

// classesOf requires s.mu.
func (s *seen) classesOf(output string) (string, odds, error) {
	names := slices.Sorted(maps.Keys(s.odds))
	if output == "" && len(names) == 1 {
		output = names[0]
	}
	of, ok := s.odds[output]
	switch {
	case s.odds == nil:
		return output, of, errors.New("the model has not seen a batch, so its outputs are unknown: call Init")
	case !ok:
		return output, of, fmt.Errorf("output %q: %w; the model has %q", output, errUnknownName, names)
	case of == oddsUnknown || of == noOdds:
		return output, of, fmt.Errorf("output %q: %w", output, ErrNoProbabilities)
	}
	return output, of, nil
}

func (s *seen) checkWidth(output string, thresholds int) error {
	if width, ok := s.widths[output]; ok && thresholds > 1 && thresholds != width {
		return fmt.Errorf("output %q: there are %d thresholds for %d classes: expected one, or one for each", output, thresholds, width)
	}
	return nil
}

func (s *seen) expect(e *expected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = e
}

func (s *seen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.made = s.run+1, 0
}

func (s *seen) stepped(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made += int64(steps)
	s.origin = origin{run: s.run, step: s.made}
}

func (s *seen) setOrigin(of origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = of
}

func (s *seen) restored(step int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = origin{run: s.run, step: step, saved: true}
}

func (s *seen) currentOrigin() origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin
}

// has returns the last run's step whose weights the model has, or -1.
func (s *seen) has(began int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.origin.run != s.run:
		return -1
	case s.origin.saved:
		return s.origin.step
	}
	return began + s.origin.step
}
