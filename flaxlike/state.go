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

// What a loop, its callbacks and its checkpoints ask of a state. Whatever changes the weights goes through the model,
// so that it knows which calibrations and thresholds are outdated.
var (
	_ abilities.Queued        = (*Model)(nil)
	_ abilities.Compiler      = (*Model)(nil)
	_ abilities.LearningRater = (*Model)(nil)
	_ checkpoint.State        = (*Model)(nil)
	_ abilities.XLADumper     = (*Model)(nil)

	_ interface {
		Settings() []checkpoint.Setting
		Versions() map[string]string
		Job() loop.Job
		Snapshot(ctx context.Context) (loop.Snapshot, error)
	} = (*Model)(nil)
)

// change makes a change of the weights. It is counted before, for a prediction that comes between, and after, for
// a calibration that was begun before.
func (m *Model) change(f func() error) error {
	m.seen.changes.Add(1)
	defer m.seen.changes.Add(1)
	m.seen.are(origin{run: -1})
	return f()
}

// unknown is a count of changes after which nothing was found.
const unknown = math.MinInt64

// Names lists the full names of the model's variables ("/model/0/kernel"), those of the optimizer and the metrics too.
func (m *Model) Names() []string { return m.state.Names() }

// Value copies a variable to the host by its full name; see managed.State.Value.
func (m *Model) Value(name string) (*tensors.Tensor, error) { return m.state.Value(name) }

// SetValue gives a variable another value by its full name; see managed.State.SetValue. A calibration and thresholds
// that were found before are outdated ([ErrOutdated]).
func (m *Model) SetValue(name string, t *tensors.Tensor) error {
	return m.change(func() error { return m.state.SetValue(name, t) })
}

// LearningRate is the optimizer's learning rate; before the first training step the one that it begins with: of an
// optimizer by name that which [Open] reads from the file. One of GoMLX's does not say it then
// (managed.ErrNoLearningRate). See managed.State.LearningRate.
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

// SetLearningRate sets the optimizer's learning rate; nothing is compiled again. See managed.State.SetLearningRate.
func (m *Model) SetLearningRate(rate float64) error { return m.state.SetLearningRate(rate) }

// MoveTo moves the model to another strategy, where it goes on with the same bits; see managed.State.MoveTo.
func (m *Model) MoveTo(ctx context.Context, to strategies.Strategy) error {
	return m.state.MoveTo(ctx, to)
}

// Snapshot copies all values to the host, to be restored later; see managed.State.Snapshot.
func (m *Model) Snapshot(ctx context.Context) (loop.Snapshot, error) {
	of := m.seen.weights()
	s, err := m.state.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if of != m.seen.weights() {
		of = origin{run: -1}
	}
	return &snapshot{s, m, of}, nil
}

// snapshot is one of a model, which notices a Restore.
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

// Content is what a checkpoint of the model has: see managed.State.Content.
func (m *Model) Content(ctx context.Context) (checkpoint.Content, error) { return m.state.Content(ctx) }

// Restore puts a checkpoint of a model into this one: see managed.State.Restore. A calibration and thresholds that were
// found before are outdated ([ErrOutdated]).
func (m *Model) Restore(ctx context.Context, c *checkpoint.Checkpoint) error {
	return m.change(func() error {
		err := m.state.Restore(ctx, c)
		if err == nil {
			m.seen.restored(int64(c.Step))
		}
		return err
	})
}

// origin says where weights are from: a run's step, counted from its beginning, or a checkpoint of that step which was
// restored in the run. They are of no run known where run is -1.
type origin struct {
	run, step int64
	saved     bool
}

// begin notes that a run begins.
func (s *seen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.made = s.run+1, 0
}

// stepped notes steps of training, which the present run has made if there is one.
func (s *seen) stepped(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made += int64(steps)
	s.origin = origin{run: s.run, step: s.made}
}

// are notes whose weights the model has now.
func (s *seen) are(of origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = of
}

// restored notes that the model has the weights of a checkpoint of that step.
func (s *seen) restored(step int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = origin{s.run, step, true}
}

func (s *seen) weights() origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin
}

// has is the step of the last run whose values the model has, or -1; the run began behind a step.
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

// Settings says what the model trains with, for checkpoint.Resume: see managed.State.Settings.
func (m *Model) Settings() []checkpoint.Setting { return m.state.Settings() }

// Versions says what the model runs on, for checkpoint.Resume: see managed.State.Versions.
func (m *Model) Versions() map[string]string { return m.state.Versions() }

// OnRead has the model call a function before it is read or changed from outside: see [abilities.Queued].
func (m *Model) OnRead(f func() error) (remove func(), err error) {
	if m == nil { // the first step says so
		return func() {}, nil
	}
	return m.state.OnRead(f)
}

// CompilingSince is when the compilation that is going on began: see [abilities.Compiler].
func (m *Model) CompilingSince() (time.Time, bool) { return m.state.CompilingSince() }

// Job is that of the processes among which the model is divided, nil for one process: see [loop.Job].
func (m *Model) Job() loop.Job { return m.state.Job() }

// DumpXLA writes the programs of the model's steps into a directory, as [callbacks.Profile] wants it.
func (m *Model) DumpXLA(dir string) error { return m.state.DumpXLA(dir) }
