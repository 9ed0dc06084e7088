package flaxlike_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// Of the nightly form, in its file.
var (
	besideAFit     = 3_000 // calls of Predict during a Fit
	besideFor      = 150 * time.Millisecond
	modelsLeftOpen = 30
	sizesPredicted = 12
)

const wide = 256

// counted is a network of two variables, all of whose numbers are how many training steps there were: what is said of
// two moments shows. It says the input, twice as large, and the variables.
func counted(scope *model.Scope, x *graph.Node) *graph.Node {
	n := x.Shape().Dimensions[0]
	all := []*graph.Node{graph.MulScalar(x, 2)}
	for _, name := range []string{"one", "two"} {
		v := scope.VariableWithValue(name, make([]float32, wide)).NodeValue(x.Graph())
		all = append(all, graph.BroadcastToDims(graph.ExpandAxes(v, 0), n, wide))
	}
	return graph.Concatenate(all, -1)
}

// counts has a gradient of -1 for each number of counted. It says, of each example, minus the sum of all numbers.
func counts(_, output *graph.Node) *graph.Node {
	return graph.Neg(graph.ReduceSum(graph.Slice(output, graph.AxisRange(), graph.AxisRange(1)), -1))
}

func countedModel(t *testing.T) *flaxlike.Model {
	return newModel(t, nn.Func(counted), flaxlike.WithBatchSize(4), flaxlike.WithLoss(flaxlike.Loss{Name: "steps", Func: counts}),
		flaxlike.WithOptimizer(optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1).Done())))
}

func filled(t testing.TB, n int, of float32) *data.Set {
	x := make([]float32, n)
	for i := range x {
		x[i] = of
	}
	set, err := data.New(data.X(x, n, 1), data.Y(x, n, 1))
	require.NoError(t, err)
	return set
}

func sawAll(p flaxlike.Prediction, of float32, rows int) (float32, error) {
	a, err := p.Output()
	if err != nil {
		return 0, err
	}
	return saw(map[string]data.Array{"preds": a}, of, rows)
}

// saw returns the number of steps after which a prediction of all its rows was made.
func saw(out map[string]data.Array, of float32, rows int) (step float32, err error) {
	flat := out["preds"].Flat.([]float32)
	if len(flat) != rows*(1+2*wide) {
		return 0, fmt.Errorf("%d numbers for %d rows", len(flat), rows)
	}
	step = flat[1]
	for r := range rows {
		row := flat[r*(1+2*wide):][:1+2*wide]
		if row[0] != 2*of {
			return 0, fmt.Errorf("asked for %v, got an answer for %v", of, row[0]/2)
		}
		for _, v := range row[1:] {
			if v != step || v != float32(int(v)) {
				return 0, fmt.Errorf("after %v steps and after %v, in one prediction", step, v)
			}
		}
	}
	return step, nil
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

// R02: without a training all answers are the same bits, whoever asks.
//
//lazo:race
func TestR02_predictByManyGoroutines(t *testing.T) {
	m := newModel(t, mlp())
	set, _ := digits(t)
	var batches []data.Batch
	var want []map[string]data.Array
	for b, err := range set.Batches(16).All() {
		require.NoError(t, err)
		if len(batches) == 8 {
			break
		}
		out, err := m.Answer(t.Context(), b)
		require.NoError(t, err)
		batches, want = append(batches, b), append(want, out)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range besideAFit / 8 {
				at := (g + i) % len(batches)
				out, err := m.Answer(t.Context(), batches[at])
				if err != nil || fmt.Sprint(out) != fmt.Sprint(want[at]) {
					t.Errorf("call %d of goroutine %d: another answer (%v)", i, g, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("R02: %d predictions by 8 goroutines: the same bits", besideAFit/8*8)
}

// F46: all that can be done with a model during its Fit, and then its Close.
//
//lazo:race
func TestF46_modelBesideAFit(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "weights")
	rows := map[string]func(m *flaxlike.Model) error{
		"Predict": func(m *flaxlike.Model) error {
			out, err := m.Predict(ctx, filled(t, 7, 3))
			if err == nil {
				_, err = sawAll(out, 3, 7)
			}
			return err
		},
		"Evaluate":        func(m *flaxlike.Model) error { _, err := m.Evaluate(ctx, filled(t, 5, 1)); return err },
		"Value":           func(m *flaxlike.Model) error { _, err := m.Value("/model/one"); return err },
		"Snapshot":        func(m *flaxlike.Model) error { s, err := snapshotOf(m)(ctx); return errors.Join(err, closed(s)) },
		"SetLearningRate": func(m *flaxlike.Model) error { return m.SetLearningRate(1) },
		"Save":            func(m *flaxlike.Model) error { return m.Save(path) },
		"Summary":         func(m *flaxlike.Model) error { _ = m.Summary().String(); return nil },
		"Fit": func(m *flaxlike.Model) error {
			_, err := m.Fit(ctx, filled(t, 4, 1), flaxlike.Fit{Output: io.Discard})
			return err
		},
		"Load": func(m *flaxlike.Model) error { // by a name of its own, which is whole
			err := m.Save(path + "2")
			if err == nil {
				err = m.Load(ctx, path+"2")
			}
			return err
		},
	}
	var results sync.Map
	for name, do := range rows {
		m := countedModel(t)
		require.NoError(t, m.Init(ctx, first(t, filled(t, 4, 1), 4)))
		var closing atomic.Bool
		begun := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		var fitErr error
		wg.Go(func() {
			_, fitErr = m.Fit(ctx, filled(t, 32, 1), flaxlike.Fit{Epochs: 1 << 20, Output: io.Discard, Callbacks: []loop.Option{loop.Thin(10),
				loop.Watch(loop.Every(loop.Steps(16)), func(context.Context, loop.Report) error { // from inside, too
					once.Do(func() { close(begun) })
					_, err := m.Predict(ctx, filled(t, 6, 1))
					return err
				})}})
		})
		<-begun
		for range 2 {
			wg.Go(func() {
				for n := 0; ; n++ {
					err := do(m)
					switch {
					case err == nil:
					case errors.Is(err, xla.ErrBusy):
						time.Sleep(time.Millisecond)
						if closing.Load() {
							return
						}
					case closing.Load() && (errors.Is(err, managed.ErrClosed) || errors.Is(err, os.ErrNotExist)):
						results.Store(name, n)
						return
					default:
						t.Errorf("%s: %v", name, err)
						return
					}
					if closing.Load() && name == "Summary" {
						return
					}
				}
			})
		}
		time.Sleep(besideFor)
		closing.Store(true)
		require.NoError(t, m.Close())
		wg.Wait()
		require.ErrorIs(t, fitErr, managed.ErrClosed, name)
	}
	t.Logf("F46: %d ways to use a Model beside its Fit, by two goroutines, %v each, then Close: only ErrBusy and ErrClosed", len(rows), besideFor)
}

func closed(s loop.Snapshot) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// A Predict whose consumer takes without end makes no one wait: neither a training, nor another Predict.
//
//lazo:race
func TestF46_aReaderThatNeverEnds(t *testing.T) {
	m := countedModel(t)
	inside, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var out flaxlike.Prediction
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		out, err = m.Predict(t.Context(), filled(t, 12, 5), loop.Watch(loop.EachStep, func(ctx context.Context, _ loop.Report) error {
			once.Do(func() {
				close(inside)
				<-leave
			})
			_, err := m.Predict(ctx, filled(t, 9, 1))
			return err
		}))
	})
	<-inside
	_, fitErr := m.Fit(t.Context(), filled(t, 32, 1), flaxlike.Fit{Epochs: 3, Output: io.Discard})
	require.NoError(t, fitErr)
	close(leave)
	wg.Wait()
	require.NoError(t, err)
	step, err := sawAll(out, 5, 12)
	require.NoError(t, err)
	require.Zero(t, step, "the weights of its first batch")
}

// F53: a model that is never closed costs no threads, as all of them have one runtime; and Predict takes ever new sizes
// of batch.
func TestF53_modelsNeverClosed(t *testing.T) {
	threads := func() int {
		list, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(list)
	}
	made := func() *flaxlike.Model {
		m, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(t, err)
		require.NoError(t, m.Init(t.Context(), first(t, line(t, 4), 4)))
		return m
	}
	before := threads()
	one := made()
	warm := threads()
	var open []*flaxlike.Model
	for range modelsLeftOpen {
		open = append(open, made())
	}
	grown := threads() - before
	require.LessOrEqual(t, grown, 8+(warm-before), "threads")
	require.LessOrEqual(t, threads()-warm, 8, "threads")
	for _, m := range open {
		require.NoError(t, errors.Join(m.Close(), m.Close()))
	}
	for n := 1; n <= sizesPredicted; n++ {
		out, err := one.Answer(t.Context(), first(t, line(t, n), n))
		require.NoError(t, err, "size %d", n)
		require.Equal(t, []int{n, 1}, out["preds"].Dims)
	}
	require.LessOrEqual(t, len(one.Summary().Layers), 1)
	require.NoError(t, one.Close())
	_, err := one.Answer(t.Context(), first(t, line(t, 4), 4))
	require.ErrorIs(t, err, managed.ErrClosed)
	t.Logf("F53: %d models never closed: %+d threads after the first; %d sizes of batch: none refused", modelsLeftOpen, threads()-warm, sizesPredicted)
}

// TestS24_closeByMany: a model that several goroutines close gives its runtime back once it is freed, and not before.
//
//lazo:race
func TestS24_closeByMany(t *testing.T) {
	const models, goroutines = 40, 4
	for range models {
		m, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(t, err)
		_, _, err = m.TrainStep(t.Context(), first(t, line(t, 4), 4))
		require.NoError(t, err)
		begin, errs := make(chan struct{}), make([]error, goroutines)
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() { <-begin; errs[i] = m.Close() })
		}
		close(begin)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	t.Logf("S24: %d models closed by %d goroutines each: no error", models, goroutines)
}
