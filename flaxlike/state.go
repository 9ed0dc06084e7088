package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// State returns the value by which loops, callbacks and [checkpoint.Resume] use the model. It is a [checkpoint.State]
// with the other methods that [loop.Stepper] and checkpoint.State list.
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

// LearningRate returns the optimizer's learning rate, as managed.State.LearningRate; before the first training step the
// initial one, or managed.ErrNoLearningRate for an optimizer of GoMLX.
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

// SetLearningRate sets the optimizer's learning rate, without a compilation.
func (m *Model) SetLearningRate(rate float64) error {
	if err := m.noTraining(); err != nil {
		return fmt.Errorf("flaxlike: set the learning rate: %w", err)
	}
	return m.state.SetLearningRate(rate)
}

// SetOptimizer replaces the optimizer from the next step on, without the old state and learning rate. The steps are
// compiled again. During a Fit it is an xla.ErrBusy. With a policy that scales losses it is an error.
func (m *Model) SetOptimizer(ctx context.Context, o *optim.Optimizer) error {
	err := m.setOptimizer(ctx, o)
	if err != nil {
		return fmt.Errorf("flaxlike: set the optimizer: %w", graphs.Inner(err))
	}
	return nil
}

func (m *Model) setOptimizer(ctx context.Context, o *optim.Optimizer) error {
	if o != nil {
		var err error
		if o, err = m.set.scaled(o); err != nil {
			return err
		}
	}
	if !m.fitting.CompareAndSwap(false, true) {
		return fmt.Errorf("the model is %w: a Fit is training it: wait for it to end", xla.ErrBusy)
	}
	defer m.fitting.Store(false)
	weights := m.seen.currentOrigin()
	if err := m.change(func() error { return m.state.SetOptimizer(ctx, o) }); err != nil {
		return err
	}
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	m.seen.optimizer, m.seen.origin = o, weights
	return nil
}

// MoveTo moves the model to another strategy, as managed.State.MoveTo.
func (m *Model) MoveTo(ctx context.Context, to strategies.Strategy) error {
	return m.state.MoveTo(ctx, to)
}

// Settings adds the model's settings that change what it learns: losses, weights and layers. Layers within a network's
// code are known after the first training step is built.
func (s modelState) Settings() []checkpoint.Setting {
	of := &s.m.set
	all := s.m.state.Settings()
	add := func(name, value string) {
		all = append(all, checkpoint.Setting{Name: name, Value: cmp.Or(value, "none")})
	}
	losses := sayJudges(judgesOf(of.losses))
	if of.innerLosses {
		losses = append(losses, lossesInside)
	}
	add("loss", strings.Join(losses, "; "))
	var classes []string
	for _, class := range slices.Sorted(maps.Keys(of.classWeights)) {
		if w := of.classWeights[class]; w != 1 {
			classes = append(classes, fmt.Sprintf("%d: %g", class, w))
		}
	}
	add("weights of classes", strings.Join(classes, ", "))
	add("weights of examples", strings.TrimSuffix(fmt.Sprintf("field %q", of.weights), `field ""`))
	layers := layersOf(s.m.network, "", map[string]string{})
	s.m.seen.mu.Lock()
	coded := s.m.seen.settings
	s.m.seen.mu.Unlock()
	for place, text := range coded {
		if _, known := layers[place]; !known {
			layers[place] = text
		}
	}
	for _, place := range slices.Sorted(maps.Keys(layers)) {
		name := "layer " + place
		if place == "" {
			name = "network"
		}
		add(name, layers[place])
	}
	return all
}

func (s modelState) Versions() map[string]string { return s.m.state.Versions() }

func (s modelState) CompilingSince() (time.Time, bool) { return s.m.state.CompilingSince() }

func (s modelState) DumpXLA(dir string) error { return s.m.state.DumpXLA(dir) }

func (s modelState) Job() loop.Job { return s.m.state.Job() }

func (s modelState) InputNames() (names []string) {
	if s.m.set.preparation != nil {
		names, _ = s.m.set.preparation.Columns()
		return names
	}
	for _, in := range s.m.inputs() {
		names = append(names, in.Name)
	}
	return names
}

func (s modelState) OutputClasses() map[string][]string {
	s.m.seen.mu.Lock()
	of, widths := s.m.seen.odds, s.m.seen.widths
	s.m.seen.mu.Unlock()
	all := map[string][]string{}
	for output, odds := range of {
		n := widths[output]
		switch odds.kindOf(n) {
		case "numbers", "unknown":
			continue
		case "binary":
			n = 2
		}
		a := answering{names: namesOf(s.m.classNames(), output, len(of))}
		for class := range n {
			all[output] = append(all[output], a.className(class))
		}
	}
	return all
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
	of := s.m.seen.currentOrigin()
	snap, err := s.m.state.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if of != s.m.seen.currentOrigin() {
		of = origin{run: -1}
	}
	return &snapshot{snap, s.m, of}, nil
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
			s.of.seen.setOrigin(s.origin)
		}
		return err
	})
}
