package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// A hook of each kind ends a run by an error or by ErrStop at its first call. The run must not continue.
func TestF15_errorsAndStopsInEachKindOfHook(t *testing.T) {
	boom := errors.New("boom")
	ends := 0
	for _, row := range []struct {
		place string
		// calls is the number of calls of the hook if it asks to stop, and reason the reason of the end.
		calls  int
		reason loop.Reason
		steps  int64 // that are counted then
		failed int64 // steps that are counted after an error
	}{
		{"on", 1, loop.Stopped, 1, 0}, // on an error nothing was changed in the turn
		{"on func", 1, loop.Stopped, 1, 1},
		{"on turn", 1, loop.Stopped, 1, 1},
		{"at start", 1, loop.Stopped, 0, 0},
		{"at end", 1, loop.DataEnded, 2, 2},
		{"block", 1, loop.Stopped, 1, 0},
		{"watcher", 1, loop.Stopped, 1, 1},
		{"callback at the start", 1, loop.Stopped, 0, 0},
		{"callback of an entry", 1, loop.Stopped, 1, 1},
		{"watch", 1, loop.Stopped, 1, 1},
		{"data", 1, loop.Failed, 2, 2},
		{"end", 1, loop.Failed, 2, 2},
		{"evaluation's data", 1, loop.Failed, 1, 1},
		{"inner task", 2, loop.DataEnded, 2, 1}, // of two evaluations each stops after its first step
		{"inner watcher", 2, loop.DataEnded, 2, 1},
	} {
		where := hookKinds[slices.IndexFunc(hookKinds, func(k hook) bool { return k.place == row.place })]
		t.Run(row.place+" fails", func(t *testing.T) {
			calls := 0
			h := newHooks(row.place, func() error { calls++; return boom })
			result, err := h.loop.Run(t.Context(), 0, h.data, h.options...)
			require.ErrorIs(t, err, boom)
			require.ErrorContains(t, err, where.prefix())
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, row.failed, result.Elapsed.Steps)
			require.Equal(t, 1, calls)
			require.Equal(t, 1, h.ended)
			ends++
		})
		t.Run(row.place+" stops", func(t *testing.T) {
			calls := 0
			h := newHooks(row.place, func() error { calls++; return loop.ErrStop })
			result, err := h.loop.Run(t.Context(), 0, h.data, h.options...)
			require.Equal(t, row.reason, result.Reason)
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.Equal(t, row.calls, calls, "it stops in the same step")
			require.Equal(t, 1, h.ended)
			switch row.reason {
			case loop.Failed:
				require.ErrorContains(t, err, where.where)
			case loop.Stopped:
				require.ErrorContains(t, result.Stop, fmt.Sprintf("loop: step %d: %s: stop", where.step, where.where), "it says who it was")
				require.NoError(t, err)
				require.Equal(t, int(row.steps), result.State, "the other tasks of the turn still ran")
			default:
				require.NoError(t, err)
			}
			ends++
		})
	}
	t.Logf("F15: %d errors and stops, each in the same step, each finish phase ran", ends)
}

// If a hook fails at any step, the counted iterations are in the state and in the history, and a resumed run repeats no
// step and leaves none out.
func TestF13_failureAtEachStep(t *testing.T) {
	const steps, last = 20, 25
	boom := errors.New("boom")
	cases := 0
	for _, row := range []struct {
		place   string
		counted bool // the turn that failed is counted: a task had changed the state before
	}{
		{"first task", false}, {"second task", true}, {"evaluation", true}, {"watcher", true}, {"callback of an entry", true}, {"value", true},
		{"data", false},
	} {
		for _, panics := range []bool{false, true} {
			for k := range steps {
				k := int64(k + 1)
				at := func(place string, step int64) error {
					if place != row.place || step != k {
						return nil
					}
					if panics {
						panic(boom)
					}
					return boom
				}
				training := func(at func(string, int64) error) (loop.Loop[int64, int64], func(from int64) loop.Data[int64], []loop.Option) {
					step := func(place string, by int64) loop.Task[int64, int64] {
						return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int64) (int64, loop.Logs, error) {
							err := at(place, n)
							var logs loop.Logs
							logs.Set(loop.Metrics, place, value(func() (float64, error) { return float64(n), at("value", n) }))
							return s + by*n, logs, err
						}))

					}
					test := loop.Evaluation[int64, int64]{Data: loop.Data[int64](func(yield func(int64, error) bool) { yield(1, nil) })}
					inner := func(n int64) loop.Task[int64, int64] {
						return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int64) (int64, loop.Logs, error) {
							return s, loop.Logs{}, at("evaluation", n)
						}))

					}
					evaluate := loop.OnTurn(loop.EachStep, func(ctx context.Context, turn *loop.Turn[int64, int64]) error {
						test.Loop = loop.New(inner(turn.Batch))
						_, _, err := test.Run(ctx, turn.State)
						return err
					})
					data := func(from int64) loop.Data[int64] {
						return func(yield func(int64, error) bool) {
							for i := from + 1; ; i++ {
								err := at("data", i)
								if !yield(i, err) || err != nil {
									return
								}
							}
						}
					}
					watch := func(place string) func(context.Context, loop.Report) error {
						return func(_ context.Context, r loop.Report) error { return at(place, r.Elapsed.Steps) }
					}
					return loop.New(step("first task", 1), step("second task", 0), evaluate), data, []loop.Option{
						loop.Watch(loop.EachStep, watch("watcher")),
						loop.WatchEntry("first task", watch("callback of an entry")),
						loop.WatchEntry("second task", func(_ context.Context, r loop.Report) error { _, err := r.Logs.Float("second task"); return err }),
					}
				}
				l, data, options := training(at)
				result, err := l.Run(t.Context(), 0, data(0), options...)
				require.ErrorIs(t, err, boom, row.place)
				require.ErrorContains(t, err, fmt.Sprintf("loop: step %d: ", k))
				require.Equal(t, loop.Failed, result.Reason)
				counted := k
				if !row.counted {
					counted--
				}
				require.Equal(t, counted, result.Elapsed.Steps, "%s at %d", row.place, k)
				require.Equal(t, counted, result.Elapsed.Samples)
				require.Equal(t, counted*(counted+1)/2, result.State, "%s at %d", row.place, k)
				require.EqualValues(t, counted, result.History.Len(), "%s at %d", row.place, k)

				l, data, options = training(func(string, int64) error { return nil })
				resumed, err := l.Run(t.Context(), result.State, rest(data(result.Elapsed.Steps)),
					append(options, loop.Continue(result.Elapsed, result.History), loop.Until(loop.Steps(last)))...)
				require.NoError(t, err)
				require.EqualValues(t, last*(last+1)/2, resumed.State)
				rows, err := resumed.History.Collect("elapsed.steps")
				require.NoError(t, err)
				require.Equal(t, upTo(1, last), rows[0])
				cases++
			}
		}
	}
	t.Logf("F13: %d failures at steps 1 to %d: state, elapsed and history agree, and all resumed without a step twice", cases, steps)
}

// workers are goroutines that make numbers. fault decides the fault of batch bad.
type workers struct {
	running atomic.Int64
	fault   func() error
	bad     int
}

// made is one batch of a worker.
type made struct {
	err      error
	panicked any
}

func (w *workers) make(i int) (m made) {
	defer func() { m.panicked = recover() }()
	if i == w.bad {
		m.err = w.fault()
	}
	return m
}

// data yields the numbers in order. It fails as its workers do and leaves no worker running.
func (w *workers) data(count int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		var next atomic.Int64
		var group sync.WaitGroup
		stop := make(chan struct{})
		slots := make([]chan made, 100)
		for i := range slots {
			slots[i] = make(chan made)
		}
		defer group.Wait()
		defer close(stop)
		for range count {
			w.running.Add(1)
			group.Go(func() {
				defer w.running.Add(-1)
				for {
					i := int(next.Add(1) - 1)
					if i == len(slots) {
						return
					}
					select {
					case slots[i] <- w.make(i):
					case <-stop:
						return
					}
				}
			})
		}
		for i := range slots {
			m := <-slots[i]
			if m.panicked != nil {
				panic(m.panicked)
			}
			if !yield(i, m.err) || m.err != nil {
				return
			}
		}
	}
}

func TestF16_dataFailsAtEachBatch(t *testing.T) {
	boom := errors.New("boom")
	cases := 0
	for _, count := range []int{1, 8} {
		for _, row := range []struct {
			name  string
			fault func() error
		}{
			{"error", func() error { return fmt.Errorf("read: %w", boom) }},
			{"panic", func() error { panic(boom) }},
		} {
			t.Run(fmt.Sprintf("%s, %d workers", row.name, count), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // it fails where a goroutine is stuck
					for k := range 51 {
						w := workers{fault: row.fault, bad: k}
						result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, w.data(count))
						require.ErrorIs(t, err, boom)
						require.ErrorContains(t, err, fmt.Sprintf("loop: step %d: data: ", k+1))
						require.Equal(t, loop.Failed, result.Reason)
						require.EqualValues(t, k, result.Elapsed.Steps)
						require.Equal(t, k*(k-1)/2, result.State, "the steps made before are in the state")
						require.Equal(t, k, result.History.Len())
						require.Zero(t, w.running.Load())
						cases++
					}
				})
			})
		}
	}
	t.Logf("F16: %d data errors and panics at batches 0 to 50, with 1 and 8 workers: each error was the original, 0 goroutines left", cases)
}

func upTo(from, to int) (steps []float64) {
	for i := from; i <= to; i++ {
		steps = append(steps, float64(i))
	}
	return steps
}
