package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// State returns the value by which loops, callbacks and [checkpoint.Resume] use the model. It is a [checkpoint.State]
// with the other methods that [loop.Stepper] and checkpoint.State list. A custom loop can save its Content.
func (m *Model) State() any { return modelState{m} }

// modelState changes the weights through the model, which counts the changes.
type modelState struct{ m *Model }

var (
	_ abilities.Stateful      = (*Model)(nil)
	_ abilities.LearningRater = (*Model)(nil)
	_ abilities.Queued        = modelState{}
	_ abilities.Compiler      = modelState{}
	_ abilities.XLADumper     = modelState{}
	_ checkpoint.State        = modelState{}

	_ interface {
		Settings() []checkpoint.Setting
		Versions() map[string]string
		Job() loop.Job
		Snapshot(ctx context.Context) (loop.Snapshot, error)
	} = modelState{}
)

// change counts before the change, for concurrent predictions, and after it, for a calibration that began earlier.
func (m *Model) change(f func() error) error {
	m.seen.changes.Add(1)
	defer m.seen.changes.Add(1)
	m.seen.are(origin{run: -1})
	return f()
}

// unknown is a count of changes that belongs to no figures.
const unknown = math.MinInt64

// Names returns the full names of all variables, such as "/model/0/kernel", including the optimizer's and the metrics'.
func (m *Model) Names() []string { return m.state.Names() }

// Value copies a variable to the host by its full name; see managed.State.Value.
func (m *Model) Value(name string) (*tensors.Tensor, error) { return m.state.Value(name) }

// SetValue sets a variable by its full name; see managed.State.SetValue. It makes a calibration and thresholds outdated
// ([ErrOutdated]).
func (m *Model) SetValue(name string, t *tensors.Tensor) error {
	return m.change(func() error { return m.state.SetValue(name, t) })
}

// LearningRate returns the optimizer's learning rate; before the first training step the initial one, or
// managed.ErrNoLearningRate for an optimizer of GoMLX. See managed.State.LearningRate.
func (m *Model) LearningRate() (float64, error) {
	rate, err := m.state.LearningRate()
	m.seen.mu.Lock()
	own := m.seen.optimizer
	m.seen.mu.Unlock()
	switch {
	case err == nil || !errors.Is(err, managed.ErrNoLearningRate):
		return rate, err
	case own == nil && m.set.noTraining != nil:
		return 0, fmt.Errorf("flaxlike: %w: %w", managed.ErrNoLearningRate, m.set.noTraining)
	case own == nil && m.set.optimizerName != "":
		return rateByName(m.set.optimizerName, m.set.rate)
	}
	if base, ok := cmp.Or(own, m.set.optimizer).Base(); ok {
		return base, nil
	}
	return rate, err
}

// SetLearningRate sets the optimizer's learning rate, without a compilation. See managed.State.SetLearningRate.
func (m *Model) SetLearningRate(rate float64) error {
	if err := m.noTraining(); err != nil {
		return fmt.Errorf("flaxlike: set the learning rate: %w", err)
	}
	return m.state.SetLearningRate(rate)
}

func (m *Model) noTraining() error {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if m.seen.optimizer != nil {
		return nil
	}
	return m.set.noTraining
}

// MoveTo moves the model to another strategy; see managed.State.MoveTo.
func (m *Model) MoveTo(ctx context.Context, to strategies.Strategy) error {
	return m.state.MoveTo(ctx, to)
}

type snapshot struct {
	loop.Snapshot
	of     *Model
	origin origin
}

func (s *snapshot) Restore(ctx context.Context) error {
	return s.of.change(func() error {
		err := s.Snapshot.Restore(ctx)
		if err == nil {
			s.of.seen.are(s.origin)
		}
		return err
	})
}

// origin is the source of the weights: a step of a run, or a checkpoint of it; run is -1 for others.
type origin struct {
	run, step      int64
	saved, carried bool // carried: the file of Open
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

func (s *seen) are(of origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = of
}

func (s *seen) restored(step int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = origin{run: s.run, step: step, saved: true}
}

func (s *seen) weights() origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin
}

// has returns the last run's step whose weights the model has, or -1. The run began after step began.
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

func (s modelState) Versions() map[string]string       { return s.m.state.Versions() }
func (s modelState) CompilingSince() (time.Time, bool) { return s.m.state.CompilingSince() }
func (s modelState) DumpXLA(dir string) error          { return s.m.state.DumpXLA(dir) }

func (s modelState) Job() loop.Job { return s.m.state.Job() }

func (s modelState) InputNames() (names []string) {
	for _, in := range s.m.inputs() {
		names = append(names, in.Name)
	}
	return names
}

func (s modelState) OnRead(f func() error) (remove func(), err error) {
	if s.m == nil {
		return func() {}, nil
	}
	return s.m.state.OnRead(f)
}

func (s modelState) Content(ctx context.Context) (checkpoint.Content, error) {
	return s.m.state.Content(ctx)
}

func (s modelState) Restore(ctx context.Context, c *checkpoint.Checkpoint) error {
	return s.m.change(func() error {
		err := s.m.state.Restore(ctx, c)
		if err == nil {
			s.m.seen.restored(int64(c.Step))
		}
		return err
	})
}

func (s modelState) Snapshot(ctx context.Context) (loop.Snapshot, error) {
	of := s.m.seen.weights()
	snap, err := s.m.state.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if of != s.m.seen.weights() {
		of = origin{run: -1}
	}
	return &snapshot{snap, s.m, of}, nil
}
