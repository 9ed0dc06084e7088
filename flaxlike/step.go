package flaxlike

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// TrainStep makes one training step. It logs each loss, its mean since the last reset as avg_<loss>, the metrics and
// the learning rate.
func (m *Model) TrainStep(ctx context.Context, batch data.Batch) (*Model, loop.Logs, error) {
	return m.single(ctx, m.train, batch)
}

// TestStep makes one test step, which changes no parameter.
func (m *Model) TestStep(ctx context.Context, batch data.Batch) (*Model, loop.Logs, error) {
	return m.single(ctx, m.test, batch)
}

func (m *Model) single(ctx context.Context, of *managed.Stepper, batch data.Batch) (*Model, loop.Logs, error) {
	batch, err := m.enter(batch, true)
	if err != nil {
		return m, loop.Logs{}, &untrained{failure(err)}
	}
	return step{of: of}.Step(ctx, m, batch)
}

// ResetStep resets the metrics and running means.
func (m *Model) ResetStep(ctx context.Context) (*Model, error) {
	if m.view != nil {
		return m, m.view.ResetMetrics()
	}
	_, err := managed.Reset(ctx, m.state)
	return m, err
}

func (m *Model) stepOn(of *managed.Stepper, set *data.Set) step {
	if set.Mapped() {
		set = nil
	}
	return step{of: of, means: true, set: set, looked: new(-1)}
}

var (
	_ loop.Stepper[*Model, data.Batch] = step{}
	_ abilities.Awaiter[*Model]        = step{}
)

func (s step) String() string { return s.of.String() }

func (s step) BlockSize() int { return s.of.BlockSize() }

func (s step) Step(ctx context.Context, m *Model, batch data.Batch) (*Model, loop.Logs, error) {
	if err := m.before(s, batch); err != nil {
		return m, loop.Logs{}, &untrained{failure(err)}
	}
	known := len(m.seen.allBounds())
	logs, err := m.one(ctx, s.of, batch)
	if err == nil && len(m.seen.allBounds()) > known {
		if err = m.before(s, batch); err != nil {
			err = errors.Join(failure(err), m.state.Wait())
		}
	}
	return m, logs, err
}

func (s step) StepBlock(ctx context.Context, m *Model, batches []data.Batch) (*Model, []loop.Logs, error) {
	if err := s.ready(ctx, m, batches[0]); err != nil {
		return m, nil, &untrained{failure(err)}
	}
	for i, b := range batches {
		if err := m.before(s, b); err != nil {
			if i == 0 {
				return m, nil, &untrained{failure(err)}
			}
			batches = batches[:i] // the next block begins with it
			logs, stepErr := m.several(ctx, s, batches)
			if stepErr != nil {
				return m, logs, errors.Join(stepErr, failure(err))
			}
			return m, logs, failure(err)
		}
	}
	logs, err := m.several(ctx, s, batches)
	return m, logs, err
}

func (s step) Await(ctx context.Context, m *Model) error {
	if m.view != nil {
		return m.view.Await()
	}
	return s.of.Await(ctx, m.state)
}

func (s step) BeginEvaluation(ctx context.Context, m *Model) (end func(context.Context) error, err error) {
	if m.view != nil {
		end, err = func(context.Context) error { return nil }, m.view.ResetMetrics()
	} else {
		end, err = s.of.BeginEvaluation(ctx, m.state)
	}
	if err != nil || s.stream == nil {
		return end, err
	}
	*s.stream = stream{}
	restore := end
	return func(ctx context.Context) error { return errors.Join(s.stream.check(m.set.weights), restore(ctx)) }, nil
}

func (m *Model) one(ctx context.Context, of *managed.Stepper, batch data.Batch) (loop.Logs, error) {
	m.changing(of, 1)
	var logs loop.Logs
	var err error
	if m.view != nil {
		logs, err = m.view.Step(ctx, of, batch)
	} else {
		_, logs, err = of.Step(ctx, m.state, batch)
		err = ofShapes(err)
	}
	return logs, m.ofOtherInputs(batch, err)
}

func (m *Model) several(ctx context.Context, s step, batches []data.Batch) (logs []loop.Logs, err error) {
	m.changing(s.of, len(batches))
	if m.view != nil {
		logs, err = m.view.StepBlock(ctx, s.of, batches)
	} else {
		_, logs, err = s.of.StepBlock(ctx, m.state, batches)
		err = ofShapes(err)
	}
	if s.means {
		logs = asShown(logs, m.set.parts())
	}
	return logs, m.ofOtherInputs(batches[0], err)
}

func (m *Model) changing(of *managed.Stepper, steps int) {
	if of == m.train {
		m.seen.changes.Add(1)
		m.seen.stepped(steps)
	}
}

func ofShapes(err error) error {
	if !errors.Is(err, managed.ErrShapes) {
		return err
	}
	return failure(fmt.Errorf("%w: each is a program to be compiled: give it batches of one shape (data.Pad, data.PadSequences)", managed.ErrShapes))
}

type untrained struct{ error }

func (u *untrained) Unwrap() error { return u.error }

func (u *untrained) Point() string { return graphs.Point(u.error) }
