package flaxlike_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla"
)

// A Fit that had come to its end and is started again makes no step, and says so.
func TestFit_saysThatItHadFinished(t *testing.T) {
	folder := openFolder(t, t.TempDir(), checkpoint.Options{})
	fit := func(epochs int, lines bool) string {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		var out bytes.Buffer
		_, err := m.Fit(t.Context(), line(t, 64), flaxlike.Fit{Epochs: epochs, Callbacks: []loop.Option{resume(folder)}, Lines: lines, Output: &out})
		require.NoError(t, err)
		return out.String()
	}
	require.NotContains(t, fit(2, false), "finished")
	require.Equal(t, "fit: the run had finished, at epoch 2, and this run's end is 2 epochs: no step was made: set more Epochs to continue, or use another folder\n", fit(2, false))
	require.Contains(t, fit(1, true), "fit: the run had finished, at epoch 2, and this run's end is 1 epoch")
}

// R02: predictions and evaluations by many goroutines during a Fit, each of one moment between two steps; the Fit has
// the same results as alone.
//
//lazo:race
func TestR02_predictBesideAFit(t *testing.T) {
	m := countedModel(t)
	require.NoError(t, m.Init(t.Context(), first(t, filled(t, 4, 1), 4)))
	ctx, cancel := context.WithCancel(t.Context())
	var history *loop.History
	var fitErr error
	begun := make(chan struct{})
	var wg sync.WaitGroup
	var fitting sync.WaitGroup
	fitting.Go(func() {
		history, fitErr = m.Fit(ctx, filled(t, 32, 1), flaxlike.Fit{Epochs: 1 << 20, Output: io.Discard, Validation: filled(t, 8, 1),
			Callbacks: []loop.Option{loop.Thin(50), loop.Watch(loop.At(loop.Steps(1)), func(context.Context, loop.Report) error { close(begun); return nil })}})
	})
	<-begun
	var calls, steps, evaluations atomic.Int64
	var largest atomic.Int64
	done := make(chan struct{})
	for g := range 8 {
		wg.Go(func() {
			last := float32(0)
			for calls.Add(1) <= int64(besideAFit) {
				of, rows := float32(1000*g)+float32(steps.Add(1)%1000), 4
				if int(of)%16 == 0 { // three batches, of one moment
					rows = 11
				}
				out, err := m.Predict(t.Context(), filled(t, rows, of))
				var step float32
				if err == nil {
					step, err = sawAll(out, of, rows)
				}
				if err == nil && step < last {
					err = fmt.Errorf("after %v steps, and before that after %v", step, last)
				}
				if err != nil {
					t.Error(err)
					return
				}
				last = step
				for n := largest.Load(); int64(step) > n && !largest.CompareAndSwap(n, int64(step)); n = largest.Load() {
				}
			}
		})
	}
	var evaluating sync.WaitGroup
	for range 2 {
		evaluating.Go(func() {
			set := filled(t, 12, 1)
			for {
				select {
				case <-done:
					return
				default:
				}
				found, err := m.Evaluate(t.Context(), set)
				if at := -found["loss"] / (2 * wide); err == nil && at != float64(int(at)) {
					err = fmt.Errorf("evaluated to %v: of several moments, or with another's", found)
				}
				if err != nil {
					t.Error(err)
					return
				}
				evaluations.Add(1)
			}
		})
	}
	_, err := m.Fit(t.Context(), filled(t, 4, 1), flaxlike.Fit{Output: io.Discard})
	wg.Wait()
	close(done)
	evaluating.Wait()
	cancel()
	fitting.Wait()
	require.ErrorIs(t, fitErr, context.Canceled)
	require.ErrorIs(t, err, xla.ErrBusy)
	require.EqualError(t, err, "flaxlike: fit: the model is in use by another call: another Fit trains it: wait for its end, or make a second model")
	rows := 0
	for elapsed, logs := range history.Rows() {
		s := float64(elapsed.Steps) // an epoch is of 8 steps, whose losses are those before them
		if _, err := logs.Get("val_loss"); err != nil {
			continue // it was cancelled in there
		}
		require.Equal(t, -2*wide*(s-4.5), float(t, logs, "loss"))
		require.Equal(t, -2*wide*s, float(t, logs, "val_loss"))
		rows++
	}
	require.Positive(t, rows)
	require.Greater(t, largest.Load(), int64(1))
	t.Logf("R02: %d predictions by 8 goroutines and %d evaluations by 2, beside a Fit of which they saw %d steps: 0 wrong", besideAFit, evaluations.Load(), largest.Load())
}
