package managed

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/strategies"
)

// View is a state as it is at one moment, to be tested and predicted with, whatever becomes of the state meanwhile: a
// training that goes on does not wait for it, whatever its data takes, and its steps do not see what that training
// does. What [Builder.Track] gathers is the view's own, so tests on several views, and those of a training, do not mix.
//
// Values are those of the first step that uses them, between two steps of the training. They are not copied; the
// training makes a copy of each that it writes over while a view has it, once for each view: so much time, and memory
// until the view's Close. What a step of a view changes beside metrics, as one that draws random numbers does, it
// changes in the state.
//
// A view may be used by any number of goroutines, whose steps wait for each other; a test is one goroutine's, as its
// metrics are those of all steps since [View.ResetMetrics]. Each is to be closed. When its state is closed, it is
// [ErrClosed]; after a move of the state ([State.MoveTo]) it is [ErrBusy].
type View struct {
	of    *State
	on    strategies.Strategy
	moves int
	// live is for an evaluation of the state itself: its values are those of the state at each step, and its metrics are
	// guarded by the state's gate for values.
	live bool

	mu      sync.Mutex // guards the rest
	pins    map[int]*store.Pin
	metrics map[int]compute.Buffer
	closed  bool
	last    store.Last // of the view's own steps
}

// View makes a view of the state.
func (s *State) View(ctx context.Context) (*View, error) {
	done, err := s.values.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("managed: view: %w", err)
	}
	defer done()
	return &View{of: s, on: s.values.Strategy(), moves: s.values.Moves(), pins: map[int]*store.Pin{}, metrics: map[int]compute.Buffer{}}, nil
}

// Step makes one step of a test on the view; see [Stepper.Step].
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

// StepBlock makes the steps of several batches; see [Stepper.StepBlock].
func (v *View) StepBlock(ctx context.Context, step *Stepper, batches []data.Batch) ([]loop.Logs, error) {
	if err := v.begin(step); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	return step.inBlocks(ctx, v.of, v, batches)
}

// begin locks the view for a step.
func (v *View) begin(step *Stepper) error {
	switch {
	case step == nil:
		return step.failed(errNoStep)
	case step.train:
		return step.failed(errors.New("a view is for tests and predictions: train the state"))
	case v != nil:
		if err := v.of.values.BeforeRead(); err != nil { // its first step reads values of the state
			return fmt.Errorf("managed: view: %w", err)
		}
	}
	return v.lock()
}

// lock has the view alone. The function of a step on it, for which it is locked, is sent away.
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

// Await waits for the steps that were begun, and gives the error of one that failed; see [Stepper.Await].
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

// ResetMetrics sets what the view has gathered back to nothing.
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

// forget frees the metrics; a step that needs them makes them anew.
func (v *View) forget() error {
	var errs []error
	for at, b := range v.metrics {
		errs = append(errs, store.Free(v.on, b))
		delete(v.metrics, at)
	}
	return errors.Join(errs...)
}

// Close gives the view up; a second Close does nothing. What it logged stays readable.
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

// usable tells whether a step can be made on the view. The state is being read, and mu is held, as for what follows.
func (v *View) usable() error {
	switch {
	case v == nil:
		return nil
	case v.closed:
		return fmt.Errorf("the view: %w", ErrClosed)
	case v.live && v.moves != v.of.values.Moves():
		return fmt.Errorf("the state was %w during the evaluation: it has moved to another strategy, or got another optimizer", ErrBusy)
	case v.moves != v.of.values.Moves():
		return fmt.Errorf("the view: the state has moved to another strategy, or got another optimizer, meanwhile, which was %w: make another view", ErrBusy)
	}
	return v.last.Usable()
}

// value is what a step gets of the view; nil where it gets the state's own.
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
	case v.metrics[at] != nil:
		return v.metrics[at], nil
	}
	t, err := filled(*c.metrics[i])
	if err == nil {
		b, err = v.on.Put(v.of.values.Variable(at).Path(), t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.of.values.Variable(at).Path(), err)
	}
	v.metrics[at] = b
	return b, nil
}

// set takes what a step made of a value, unless it is the state's.
func (v *View) set(c *compiled, i int, b compute.Buffer) bool {
	if v == nil || c.metrics[i] == nil {
		return false
	}
	v.metrics[c.values[i]] = b
	return true
}
