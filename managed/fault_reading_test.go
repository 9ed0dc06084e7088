package managed_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// Each read or change of the state first runs the collected steps, without a gate held, and returns their error.
func TestS03_stepsThatWaitAreMadeBeforeARead(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	train, test := stepper(t, managed.TrainStep(regression)), stepper(t, managed.TestStep(regression))
	batch := firstBatch(t)
	_, _, err := train.Step(t.Context(), state, batch)
	require.NoError(t, err)
	view, err := state.View(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, view.Close()) }()
	snapshot := take(t, state)
	defer func() { require.NoError(t, snapshot.Close()) }()
	const name = "/dense/dense/biases"
	reads := map[string]func() error{
		"Value":           func() error { _, err := state.Value(name); return err },
		"Values":          func() error { _, err := state.Values(name); return err },
		"SetValue":        func() error { return state.SetValue(name, tensors.FromValue([]float32{1})) },
		"Snapshot":        func() error { s, err := state.Snapshot(t.Context()); return errors.Join(err, closed(s)) },
		"Snapshot's own":  func() error { return snapshot.Restore(t.Context()) },
		"Content":         func() error { _, err := state.Content(t.Context()); return err },
		"LearningRate":    func() error { _, err := state.LearningRate(); return err },
		"RatesInForce":    func() error { _, err := state.RatesInForce(); return err },
		"SetLearningRate": func() error { return state.SetLearningRate(0.1) },
		"SummaryOfValues": func() error { _, err := state.SummaryOfValues(t.Context()); return err },
		"Reset":           func() error { _, err := managed.Reset(t.Context(), state); return err },
		"Wait":            state.Wait,
		"View":            func() error { v, err := state.View(t.Context()); return errors.Join(err, closed(v)) },
		"a view's Step":   func() error { _, err := view.Step(t.Context(), test, batch); return err },
		"a test step":     func() error { _, _, err := test.Step(t.Context(), state, batch); return err },
		"a training step": func() error { _, _, err := train.Step(t.Context(), state, batch); return err },
		"Prepare":         func() error { return test.Prepare(t.Context(), state, batch) },
		"BeginEvaluation": func() error {
			end, err := test.BeginEvaluation(t.Context(), state)
			return errors.Join(err, ended(t, end))
		},
		"Export": func() error {
			return test.Export(filepath.Join(t.TempDir(), "program"), state, batch, managed.ExportOptions{})
		},
		"Clone": func() error {
			c, err := state.Clone(t.Context(), strategies.Jit(r))
			return errors.Join(err, closed(c))
		},
		"MoveTo": func() error { return state.MoveTo(t.Context(), state.Strategy()) },
		"OnRead": func() error { remove, err := state.OnRead(func() error { return nil }); removed(remove); return err },
	}
	calls, waits := 0, true
	failure := errors.New("a step that waited has failed")
	var fails error
	remove, err := state.OnRead(func() error {
		if !waits { // of the run's own steps
			return nil
		}
		waits = false
		calls++
		_, _, err := train.StepBlock(t.Context(), state, slices.Repeat([]data.Batch{batch}, 3))
		return errors.Join(fails, err)
	})
	require.NoError(t, err)
	for name, read := range reads {
		waits = true
		calls = 0
		require.NoError(t, read(), name)
		require.Equal(t, 1, calls, name)
		waits, fails = true, failure
		require.ErrorIs(t, read(), failure, name)
		fails = nil
	}
	remove()
	waits, calls = true, 0
	_, err = state.Value(name)
	require.NoError(t, err)
	require.Zero(t, calls)
}

func closed[C interface {
	comparable
	Close() error
}](c C) error {
	var none C
	if c == none {
		return nil
	}
	return c.Close()
}

func ended(t *testing.T, end func(context.Context) error) error {
	if end == nil {
		return nil
	}
	return end(t.Context())
}

func removed(remove func()) {
	if remove != nil {
		remove()
	}
}
