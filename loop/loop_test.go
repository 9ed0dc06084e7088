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
	"pgregory.net/rapid"

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

func TestRun_addsUp(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(10))
	require.NoError(t, err)
	require.Equal(t, 45, result.State)
	require.Equal(t, loop.DataEnded, result.Reason)
	require.EqualValues(t, 10, result.Elapsed.Steps)
	require.EqualValues(t, 10, result.Elapsed.Samples)
	_, sums, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 3, 6, 10, 15, 21, 28, 36, 45}, sums)
}

func TestRun_orderInATurn(t *testing.T) {
	var trace []string
	note := func(what string) func(context.Context, int, int) (int, loop.Logs, error) {
		return func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			trace = append(trace, what)
			return s, loop.Logs{}, nil
		}
	}
	watch := func(what string) func(context.Context, loop.Report) error {
		return func(_ context.Context, r loop.Report) error {
			trace = append(trace, fmt.Sprintf("%s@%d", what, r.Elapsed.Steps))
			return nil
		}
	}
	l := loop.New(loop.On(loop.Every(loop.Steps(2)), loop.StepFunc(note("even"))), loop.On(loop.EachStep, loop.StepFunc(note("each"))))
	_, err := l.Run(t.Context(), 0, numbers(3), loop.Watch(loop.EachStep, watch("w1")), loop.Watch(loop.At(loop.Steps(3)), watch("w2")))
	require.NoError(t, err)
	require.Equal(t, []string{"each", "w1@1", "even", "each", "w1@2", "each", "w1@3", "w2@3"}, trace)
}

func TestRun_endings(t *testing.T) {
	boom := errors.New("boom")
	stopAt := func(n int, err error) loop.Task[int, int] {
		return loop.On(loop.EachStep, loop.StepFunc(func(ctx context.Context, s, b int) (int, loop.Logs, error) {
			if b == n {
				return s + 100, loop.Logs{}, err
			}
			return s + b, loop.Logs{}, nil
		})).
			Named("adder")
	}
	for _, row := range []struct {
		name    string
		task    loop.Task[int, int]
		data    loop.Data[int]
		options []loop.Option
		reason  loop.Reason
		state   int
		steps   int64
		err     string
	}{
		{name: "data ends", task: stopAt(99, nil), data: numbers(4), reason: loop.DataEnded, state: 6, steps: 4},
		{name: "until", task: stopAt(99, nil), data: numbers(99), options: []loop.Option{loop.Until(loop.Steps(3))}, reason: loop.UntilReached, state: 3, steps: 3},
		{name: "until zero makes no turn", task: stopAt(0, boom), data: numbers(9), options: []loop.Option{loop.Until(loop.Steps(0))}, reason: loop.UntilReached},
		{name: "no data", task: stopAt(0, boom), data: numbers(0), reason: loop.DataEnded},
		{name: "stop counts the turn", task: stopAt(2, loop.ErrStop), data: numbers(9), reason: loop.Stopped, state: 101, steps: 3},
		{name: "wrapped stop", task: stopAt(2, fmt.Errorf("enough: %w", loop.ErrStop)), data: numbers(9), reason: loop.Stopped, state: 101, steps: 3},
		{name: "an error keeps the last good state", task: stopAt(2, boom), data: numbers(9), reason: loop.Failed, state: 1, steps: 2,
			err: "loop: step 3: each step: adder: boom"},
		{name: "a data error", task: stopAt(99, nil), data: failing(2, boom), reason: loop.Failed, state: 1, steps: 2, err: "loop: step 3: data: boom"},
		{name: "a watcher's error", task: stopAt(99, nil), data: numbers(9), reason: loop.Failed, state: 3, steps: 3, err: "loop: step 3: every 3 steps: boom",
			options: []loop.Option{loop.Watch(loop.Every(loop.Steps(3)), func(context.Context, loop.Report) error { return boom })}},
		{name: "a watcher stops", task: stopAt(99, nil), data: numbers(9), reason: loop.Stopped, state: 3, steps: 3,
			options: []loop.Option{loop.Watch(loop.Every(loop.Steps(3)), func(context.Context, loop.Report) error { return loop.ErrStop })}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := loop.New(row.task).Run(t.Context(), 0, row.data, row.options...)
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, row.err)
				require.ErrorIs(t, err, boom)
			}
			require.Equal(t, row.reason, result.Reason, result.Reason.String())
			require.Equal(t, row.state, result.State)
			require.Equal(t, row.steps, result.Elapsed.Steps)
		})
	}
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

func TestRun_cancel(t *testing.T) {
	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) {
		if b == 4 {
			cancel(cause)
		}
		return s + 1, loop.Logs{}, nil
	})))
	result, err := l.Run(ctx, 0, numbers(1000))
	require.ErrorIs(t, err, cause)
	require.Equal(t, loop.Cancelled, result.Reason)
	require.Equal(t, 5, result.State, "the step that was running is finished, no further one starts")
	require.EqualValues(t, 5, result.Elapsed.Steps)
}

// A task may notice the end of the context before the loop does, and return its cause or its error.
func TestRun_cancelInsideATask(t *testing.T) {
	cause := errors.New("the user went home")
	for _, report := range []func(context.Context) error{context.Cause, func(ctx context.Context) error { return ctx.Err() }} {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) {
			if b == 4 {
				cancel(cause)
				return s, loop.Logs{}, fmt.Errorf("step: %w", report(ctx))
			}
			return s + 1, loop.Logs{}, nil
		})))
		result, err := l.Run(ctx, 0, numbers(1000))
		require.ErrorIs(t, err, report(ctx))
		require.Equal(t, loop.Cancelled, result.Reason)
		require.Equal(t, 4, result.State)
		require.EqualValues(t, 4, result.Elapsed.Steps, "the turn was not finished")
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

func TestRun_refusesBadSettings(t *testing.T) {
	ok := loop.On(loop.EachStep, loop.StepFunc(add))
	for _, row := range []struct {
		name, err string
		tasks     []loop.Task[int, int]
		options   []loop.Option
		data      loop.Data[int]
	}{
		{name: "zero period", err: "loop: task 2 (every 0 steps: late): period must be positive, got 0 steps", data: numbers(1),
			tasks: []loop.Task[int, int]{ok, loop.On(loop.Every(loop.Steps(0)), loop.StepFunc(add)).Named("late")}},
		{name: "negative time", err: "loop: task 1 (at -1s): period must be positive, got -1s", data: numbers(1),
			tasks: []loop.Task[int, int]{loop.On(loop.At(loop.Time(-time.Second)), loop.StepFunc(add))}},
		{name: "no period", err: `loop: task 1 (every): schedule "every" has no period`, data: numbers(1), tasks: []loop.Task[int, int]{loop.On(loop.Every(nil), loop.StepFunc(add))}},
		{name: "no function", err: "loop: task 1 (each step): no function given", data: numbers(1), tasks: []loop.Task[int, int]{loop.On(loop.EachStep, loop.StepFunc[int, int](nil))}},
		{name: "no watcher", err: "loop: callback 1 (each step): no function given", data: numbers(1), tasks: []loop.Task[int, int]{ok}, options: []loop.Option{loop.Watch(loop.EachStep, nil)}},
		{name: "negative until", err: "loop: until: period must be zero or positive, got -1 steps", data: numbers(1), tasks: []loop.Task[int, int]{ok}, options: []loop.Option{loop.Until(loop.Steps(-1))}},
		{name: "no data", err: "loop: no data given", tasks: []loop.Task[int, int]{ok}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := loop.New(row.tasks...).Run(t.Context(), 3, row.data, row.options...)
			require.EqualError(t, err, row.err)
			require.Equal(t, 3, result.State)
			require.Equal(t, loop.Failed, result.Reason)
		})
	}
}

func TestOnTurn_seesAndChangesAll(t *testing.T) {
	l := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(add)),
		loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, int]) error {
			sum, err := turn.Logs.Float("sum")
			turn.Logs.Metric("twice", 2*sum)
			turn.State += 1000
			return err
		}))
	result, err := l.Run(t.Context(), 0, numbers(2))
	require.NoError(t, err)
	require.Equal(t, 2001, result.State)
	_, twice, err := result.History.Series("metrics.twice")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 2 * 1001}, twice)
}

// A schedule is due as often as its period fits, however the iterations divide the time, so a run can be resumed.
func TestEvery_countsWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(t, "period")
		s := loop.Every(loop.Samples(n))
		var before loop.Elapsed
		fired := map[int64]bool{}
		for _, batch := range rapid.SliceOfN(rapid.Int64Range(1, 7), 0, 60).Draw(t, "batches") {
			after := before
			after.Steps, after.Samples = after.Steps+1, after.Samples+batch
			if s.Due(before, after) {
				fired[after.Samples/n] = true
			} else if after.Samples/n != before.Samples/n {
				t.Fatalf("missed a multiple of %d between %d and %d", n, before.Samples, after.Samples)
			}
			before = after
		}
		for k := range fired {
			if k < 1 || k > before.Samples/n {
				t.Fatalf("fired for %d·%d at most %d", k, n, before.Samples)
			}
		}
	})
}

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
