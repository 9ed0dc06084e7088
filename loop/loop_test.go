package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbers yields 0…n-1. A toy state of one number is all that the loop's tests need.
func numbers(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// stepEach makes the steps of a block one by one, as [loop.Stepper] wants it.
func stepEach[S, B any](ctx context.Context, step func(context.Context, S, B) (S, loop.Logs, error), state S, batches []B) (S, []loop.Logs, error) {
	var all []loop.Logs
	for _, b := range batches {
		next, logs, err := step(ctx, state, b)
		if err != nil && !errors.Is(err, loop.ErrStop) {
			return state, all, err
		}
		if state, all = next, append(all, logs); err != nil {
			return state, all, err
		}
	}
	return state, all, nil
}

// rest is a source of the rest of the data, wherever the run begins.
func rest[B any](data loop.Data[B]) loop.Source[B] {
	return loop.From(func(int64) iter.Seq2[B, error] { return iter.Seq2[B, error](data) })
}

func add(_ context.Context, sum, n int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("sum", float64(sum+n))
	return sum + n, logs, nil
}

func failing(at int, err error) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range at {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, err)
	}
}

func TestF13_panics(t *testing.T) {
	errValue := errors.New("an error value")
	cases := 0
	for _, value := range []any{errValue, "text", 7, nilMapWrite, runtime.Goexit} {
		for _, place := range []string{"task", "watcher", "data", "end"} {
			t.Run(fmt.Sprintf("%T in %s", value, place), func(t *testing.T) {
				boom := func(here string) {
					if here != place {
						return
					}
					if f, ok := value.(func()); ok {
						f()
					}
					panic(value)
				}
				ended := 0
				l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
					boom("task")
					return s + 1, loop.Logs{}, nil
				})).
					Named("task"))
				data := func(yield func(int, error) bool) {
					yield(1, nil)
					boom("data")
				}
				first := attend("first", loop.EachStep, func() loop.Attendant { return &attendant{end: func() { ended++ }} })
				second := attend("watcher", loop.EachStep, func() loop.Attendant {
					return &attendant{watch: func() { boom("watcher") }, end: func() { ended++; boom("end") }}
				})
				_, err := l.Run(t.Context(), 0, loop.Data[int](data), first, second)
				var p *loop.PanicError
				require.ErrorAs(t, err, &p)
				require.Contains(t, string(p.Stack), "loop_test.go")
				step := map[bool]string{false: "step 1: ", true: "step 2: "}[place == "data"]
				require.ErrorContains(t, err, step)
				require.ErrorContains(t, err, map[string]string{"end": "watcher: "}[place])
				if value == errValue {
					require.ErrorIs(t, err, errValue)
				}
				require.Equal(t, 2, ended, "every attendant hears of the end")
				cases++
			})
		}
	}
	t.Logf("F13: %d panics became errors, 0 escaped", cases)
}

// nilMapWrite panics with an error of the Go runtime.
func nilMapWrite() {
	var m map[int]int
	write := func(into map[int]int) { into[1] = 1 }
	write(m)
}

type attendant struct{ watch, end func() }

func (a *attendant) Watch(context.Context, loop.Report) error {
	if a.watch != nil {
		a.watch()
	}
	return nil
}

func (a *attendant) End(context.Context, loop.Ending) error {
	if a.end != nil {
		a.end()
	}
	return nil
}

func TestEnd_lastFirst_and_errorsJoined(t *testing.T) {
	var order []string
	one, two := errors.New("one"), errors.New("two")
	end := func(name string, err error) loop.Option {
		return attend(name, loop.EachStep, func() loop.Attendant { return ender{func() error { order = append(order, name); return err }} })
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(2), end("a", one), end("b", two))
	require.Equal(t, []string{"b", "a"}, order)
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, two)
	require.Equal(t, loop.Failed, result.Reason)
	require.Equal(t, 1, result.State)
}

type ender struct{ end func() error }

func (ender) Watch(context.Context, loop.Report) error { return nil }
func (e ender) End(context.Context, loop.Ending) error { return e.end() }

func BenchmarkIdleTurn(b *testing.B) { idleTurns(b, context.Background()) }

// If the context can end, the run prepares to leave its data.
func BenchmarkIdleTurn_cancellable(b *testing.B) { idleTurns(b, b.Context()) }

func idleTurns(b *testing.B, ctx context.Context) {
	forever := func(yield func(int, error) bool) {
		for yield(1, nil) {
		}
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) { return s + n, loop.Logs{}, nil })))
	b.ReportAllocs()
	b.ResetTimer()
	result, err := l.Run(ctx, 0, loop.Data[int](forever), loop.Until(loop.Steps(b.N)))
	if err != nil || result.State != b.N {
		b.Fatal(err, result.State)
	}
}

// A schedule of time must see all of the run's time once, although tasks take some of it: here the tasks, the watchers
// and the history ask at different moments of a turn.
func TestTimeSchedules_seeOneLineOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(time.Second)
			var logs loop.Logs
			logs.Metric("n", float64(n))
			return s, logs, nil
		}))

		tasks, watchers := 0, 0
		count := loop.On(loop.Every(loop.Time(3*time.Second)), loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			tasks++
			return s, loop.Logs{}, nil
		}))

		var last time.Duration
		result, err := loop.New(slow, count).Run(t.Context(), 0, numbers(30), loop.Keep(loop.Every(loop.Time(10*time.Second))),
			loop.Watch(loop.Every(loop.Time(3*time.Second)), func(_ context.Context, r loop.Report) error {
				watchers++
				last = r.Elapsed.Time
				return nil
			}))
		require.NoError(t, err)
		require.Equal(t, 9, tasks, "a task sees the time at which its turn began: 0 to 29 s")
		require.Equal(t, 10, watchers, "a watcher sees the time after the tasks: 1 to 30 s")
		require.Equal(t, 30*time.Second, last)
		require.Equal(t, 3, result.History.Len())
		require.Equal(t, 30*time.Second, result.Elapsed.Time)
	})
}
