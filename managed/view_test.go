package managed_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// TestS24_closeByMany: whichever Close returns first, the state's values are freed, so the runtime may be closed.
//
//lazo:race
func TestS24_closeByMany(t *testing.T) {
	const states, goroutines = 40, 4
	batch := first(t, line(t, 16).Batches(16))
	for range states {
		r, err := xla.Open(t.Context(), xla.CPU)
		require.NoError(t, err)
		state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		step := managed.TrainStep(regression)
		_, _, err = step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		view, err := state.View(t.Context())
		require.NoError(t, err)
		snapshot, err := state.Snapshot(t.Context())
		require.NoError(t, err)
		begin, errs := make(chan struct{}), make([]error, goroutines)
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() {
				<-begin
				errs[i] = errors.Join(view.Close(), snapshot.Close(), state.Close(), step.Close(), r.Close())
			})
		}
		close(begin)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	t.Logf("S24: %d states closed by %d goroutines each, which close the runtime next: no error", states, goroutines)
}

// Data that reads the state sees each step whose batch it has returned, under blocks, by every way of reading; a step
// that it runs itself comes after those.
func TestS03_dataThatReadsTheState(t *testing.T) {
	for name, strategy := range strategiesOf(t) {
		t.Run(name, func(t *testing.T) { dataThatReads(t, strategy) })
	}
}

// F46: each use of a state from within its build function is ErrBusy at once, in the first call and in later ones,
// under each strategy and at any call depth. Methods without an error result work. Another state, which trains
// meanwhile, can be used.
//
//lazo:race
func TestF46_whatAStepsFunctionAsks(t *testing.T) {
	r := plugintest.CPU(t)
	for _, on := range []strategies.Strategy{strategies.Jit(r), strategies.Eager(r)} {
		t.Run(on.String(), func(t *testing.T) {
			ctx, batch := t.Context(), firstBatch(t)
			state, teacher := newState(t, r), newState(t, r, managed.WithOptimizer(sgd()))
			require.NoError(t, state.MoveTo(ctx, on))
			require.NoError(t, teacher.MoveTo(ctx, on))
			other, teach := stepper(t, managed.TestStep(regression)), stepper(t, managed.TrainStep(regression))
			_, _, err := teach.Step(ctx, teacher, batch)
			require.NoError(t, err)
			view, err := state.View(ctx)
			require.NoError(t, err)
			var step *managed.Stepper
			calls := map[string]func() error{
				"Value":           func() error { _, err := state.Value("/dense/dense/weights"); return err },
				"SetValue":        func() error { return state.SetValue("/dense/dense/weights", tensors.FromValue([]float32{1})) },
				"Wait":            func() error { return state.Wait() },
				"Snapshot":        func() error { _, err := state.Snapshot(ctx); return err },
				"Content":         func() error { _, err := state.Content(ctx); return err },
				"Clone":           func() error { _, err := state.Clone(ctx, on); return err },
				"LearningRate":    func() error { _, err := state.LearningRate(); return err },
				"SetLearningRate": func() error { return state.SetLearningRate(1) },
				"Reset":           func() error { _, err := managed.Reset(ctx, state); return err },
				"BeginEvaluation": func() error { _, err := other.BeginEvaluation(ctx, state); return err },
				"MoveTo":          func() error { return state.MoveTo(ctx, strategies.Jit(r)) },
				"View":            func() error { _, err := state.View(ctx); return err },
				"a view's Step":   func() error { _, err := view.Step(ctx, other, batch); return err },
				"a view's Await":  func() error { return view.Await() },
				"a view's Close":  func() error { return view.Close() },
				"Step":            func() error { _, _, err := other.Step(ctx, state, batch); return err },
				"Prepare":         func() error { return other.Prepare(ctx, state, batch) },
				"Await":           func() error { return other.Await(ctx, state) },
				"Export":          func() error { return other.Export(t.TempDir(), state, batch, managed.ExportOptions{}) },
				"Close":           func() error { return state.Close() },
			}
			var deep func(n int, f func() error) error
			deep = func(n int, f func() error) error {
				if n == 0 {
					return f()
				}
				return deep(n-1, f)
			}
			asked, built := map[string]int{}, 0
			step = stepper(t, managed.TestStep(func(b *managed.Builder) {
				built++
				for name, call := range calls {
					for _, depth := range []int{0, 600} {
						err := deep(depth, call)
						if errors.Is(err, xla.ErrBusy) {
							asked[name]++
						} else {
							t.Errorf("%s, %d calls deep: %v, expected ErrBusy", name, depth, err)
						}
					}
				}
				_, _, _, _, _ = state.Names(), state.Strategy(), state.Parameters(), state.Summary(), state.Settings()
				_, err := teacher.Value("/dense/dense/weights")
				require.NoError(t, err)
				regression(b)
			}))
			for range 3 {
				_, _, err = step.Step(ctx, state, batch)
				require.NoError(t, err)
			}
			for name := range calls {
				require.Equal(t, 2*built, asked[name], name)
			}
			require.NoError(t, view.Close())
			require.NoError(t, other.Close())

			// A teacher that trains, so that its own structure and values are held again and again, is waited for.
			var stop atomic.Bool
			trained := make(chan error)
			go func() {
				for !stop.Load() {
					if _, _, err := teach.Step(ctx, teacher, batch); err != nil {
						trained <- err
						return
					}
				}
				trained <- nil
			}()
			ask := stepper(t, managed.TestStep(func(b *managed.Builder) {
				for range 20 {
					_, err := teacher.LearningRate()
					if err == nil {
						_, err = teacher.Value("/dense/dense/weights")
					}
					if err != nil {
						t.Error(err)
					}
				}
				regression(b)
			}))
			for range 10 {
				_, _, err := ask.Step(ctx, state, batch)
				require.NoError(t, errors.Join(err, ask.Close()))
			}
			stop.Store(true)
			require.NoError(t, <-trained)
		})
	}
}

// A nil stepper, view or runtime is an error, and no panic.
func TestNilStepsViewsAndRuntimes(t *testing.T) {
	ctx, batch := t.Context(), firstBatch(t)
	state := newState(t, plugintest.CPU(t))
	view, err := state.View(ctx)
	require.NoError(t, err)
	var none *managed.Stepper
	_, err = view.Step(ctx, nil, batch)
	require.EqualError(t, err, "managed: step: the step is nil: make one with TrainStep or TestStep")
	_, err = view.StepBlock(ctx, nil, nil)
	require.ErrorContains(t, err, "the step is nil")
	_, _, err = none.Step(ctx, state, batch)
	require.ErrorContains(t, err, "the step is nil")
	require.ErrorContains(t, none.Prepare(ctx, state, batch), "the step is nil")
	one := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) { yield(batch, nil) })
	_, err = loop.New(loop.On(loop.EachStep, none)).Run(ctx, state, one)
	require.ErrorContains(t, err, "the step is nil: make one with TrainStep or TestStep")
	_, _, err = loop.Evaluate("test", none, one).Run(ctx, state)
	require.ErrorContains(t, err, "the step is nil: make one with TrainStep or TestStep")
	require.NoError(t, view.Close())

	var gone *managed.View
	step := stepper(t, managed.TestStep(regression))
	_, err = gone.Step(ctx, step, batch)
	require.EqualError(t, err, "managed: view: the view is nil: make one with State.View")
	_, err = gone.StepBlock(ctx, step, nil)
	require.ErrorContains(t, err, "the view is nil")
	for _, err := range []error{gone.Await(), gone.ResetMetrics(), gone.Close()} {
		require.ErrorContains(t, err, "the view is nil")
	}

	const noRuntime = "the strategy jit was made with a runtime that is nil: open one with xla.Open"
	_, err = managed.New(strategies.Jit(nil))
	require.EqualError(t, err, "managed: new state: "+noRuntime)
	_, err = state.Clone(ctx, strategies.Jit(nil))
	require.EqualError(t, err, "managed: clone: "+noRuntime)
	require.EqualError(t, state.MoveTo(ctx, strategies.Jit(nil)), "managed: move: "+noRuntime)
}
