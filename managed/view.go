package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// View has a state's values of one moment, for tests and predictions during training.
//
// A view fixes a value when its step first uses it, always between two training steps, and copies it once when training
// overwrites it. Each step of a view has its own metrics of [Builder.Track], over all its steps since
// [View.ResetMetrics]. Other changes, like drawing random numbers, go to the state.
//
// A view is safe for concurrent use; steps run in turn. Close it. It returns [ErrClosed] after its state's Close,
// [xla.ErrBusy] after [State.MoveTo].
type View struct {
	of    *State
	on    strategies.Strategy
	moves int
	// live: an evaluation, with the state's current values; the value gate guards its metrics.
	live bool

	mu      sync.Mutex // for the rest
	pins    map[int]*store.Pin
	metrics map[gathered]compute.Buffer
	closed  bool
	last    store.Last
}

type gathered struct {
	by *Stepper
	at int
}

// View makes a view of the state.
func (s *State) View(ctx context.Context) (*View, error) {
	done, err := s.values.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("managed: view: %w", err)
	}
	defer done()
	return &View{of: s, on: s.values.Strategy(), moves: s.values.Moves(), pins: map[int]*store.Pin{}, metrics: map[gathered]compute.Buffer{}}, nil
}

func (s *State) viewOf(step *Stepper) *View {
	for _, e := range slices.Backward(s.evaluations) {
		if e.step == step {
			return e.view
		}
	}
	return nil
}

// Step runs one test step.
func (v *View) Step(ctx context.Context, step *Stepper, batch data.Batch) (loop.Logs, error) {
	if err := v.begin(step); err != nil {
		return loop.Logs{}, err
	}
	defer v.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return loop.Logs{}, step.failed(err)
	}
	logs, err := step.run(ctx, v.of, v, []data.Batch{batch}, 1)
	if err != nil {
		return loop.Logs{}, step.failed(err)
	}
	return logs[0], nil
}

// StepBlock runs several steps.
func (v *View) StepBlock(ctx context.Context, step *Stepper, batches []data.Batch) ([]loop.Logs, error) {
	if err := v.begin(step); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	return step.inBlocks(ctx, v.of, v, batches)
}

func (v *View) begin(step *Stepper) error {
	switch {
	case step.none():
		return step.failed(errNoStep)
	case step.train:
		return step.failed(errors.New("a view is only for tests and predictions: train the state"))
	case v != nil:
		if err := v.of.values.BeforeRead(); err != nil {
			return fmt.Errorf("managed: view: %w", err)
		}
	}
	return v.lock()
}

// lock refuses a build function on this view, which would deadlock.
func (v *View) lock() error {
	if v == nil {
		return errors.New("managed: view: the view is nil: make one with State.View")
	}
	if err := v.of.values.NotWithin(); err != nil {
		return fmt.Errorf("managed: view: %w", err)
	}
	v.mu.Lock()
	return nil
}

// Await waits for started steps and returns their error.
func (v *View) Await() error {
	if err := v.lock(); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if err := v.last.Follow(nil); err != nil {
		return fmt.Errorf("managed: view: %w", err)
	}
	return nil
}

// ResetMetrics clears the view's metrics.
func (v *View) ResetMetrics() error {
	if err := v.lock(); err != nil {
		return err
	}
	defer v.mu.Unlock()
	err := errors.Join(v.last.Follow(nil), v.forget())
	if err != nil {
		return fmt.Errorf("managed: view: reset metrics: %w", err)
	}
	return nil
}

func (v *View) forget() error {
	var errs []error
	for at, b := range v.metrics {
		errs = append(errs, store.Free(v.on, b))
		delete(v.metrics, at)
	}
	return errors.Join(errs...)
}

// Close releases the view. Logged values stay readable. A second Close does nothing.
func (v *View) Close() error {
	if err := v.lock(); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if v.closed {
		return nil
	}
	v.closed = true
	errs := []error{v.last.Follow(nil), v.forget()}
	for _, p := range v.pins {
		errs = append(errs, p.Release())
	}
	v.pins = nil
	return gate.Once(errors.Join(errs...))
}

// usable and the following methods need the state's read access and mu.
func (v *View) usable() error {
	switch {
	case v == nil:
		return nil
	case v.closed:
		return fmt.Errorf("the view: %w", ErrClosed)
	case v.live && v.moves != v.of.values.Moves():
		return fmt.Errorf("the state was %w during the evaluation: it has moved to another strategy, or got another optimizer", xla.ErrBusy)
	case v.moves != v.of.values.Moves():
		return fmt.Errorf("the view: the state was %w since the view was made: it has moved to another strategy, or got another optimizer: make another view", xla.ErrBusy)
	}
	return v.last.Usable()
}

// value returns nil for the state's own value.
func (v *View) value(c *compiled, i int) (b compute.Buffer, err error) {
	at := c.values[i]
	switch {
	case v == nil || c.metrics[i] == nil && (v.live || c.changed[i]):
		return nil, nil
	case c.metrics[i] == nil:
		if v.pins[at] == nil {
			v.pins[at] = v.of.values.Pin(at)
		}
		return v.pins[at].Buffer, nil
	}
	of := gathered{c.step, at}
	if b = v.metrics[of]; b != nil {
		return b, nil
	}
	t, err := filled(*c.metrics[i])
	if err == nil {
		b, err = v.on.Put(v.of.values.Variable(at).Path(), t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.of.values.Variable(at).Path(), err)
	}
	v.metrics[of] = b
	return b, nil
}

// set returns false if the result belongs to the state.
func (v *View) set(c *compiled, i int, b compute.Buffer) bool {
	if v == nil || c.metrics[i] == nil {
		return false
	}
	v.metrics[gathered{c.step, c.values[i]}] = b
	return true
}

func (c *compiled) needs(view *View) hold {
	if c.program.Rebuilds() {
		return holdAll
	}
	if c.changesState(view) {
		return holdValues
	}
	return shareValues
}

// changesState: a run changes values under the state's gate, not a view's.
func (c *compiled) changesState(view *View) bool {
	for i, changed := range c.changed {
		if changed && (view == nil || view.live || c.metrics[i] == nil) {
			return true
		}
	}
	return false
}
