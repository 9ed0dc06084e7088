package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// writer notes the steps that it was shown, and how it was ended.
type writer struct {
	each  time.Duration // that one report takes
	steps []int64
	fails func(step int64) error
	ended int
}

func (w *writer) Watch(_ context.Context, r loop.Report) error {
	time.Sleep(w.each)
	w.steps = append(w.steps, r.Elapsed.Steps)
	if w.fails != nil {
		return w.fails(r.Elapsed.Steps)
	}
	return nil
}

func (w *writer) End(context.Context, loop.Ending) error {
	w.ended++
	return nil
}

func (w *writer) option(name string) loop.Callback {
	return attend(name, loop.EachStep, func() loop.Attendant { return w })
}

func tick(_ context.Context, s, _ int) (int, loop.Logs, error) {
	time.Sleep(time.Millisecond)
	return s + 1, metric("n", float64(s)), nil
}

func TestF35_slowWritersInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, slow := &writer{}, &writer{each: 100 * time.Millisecond}
		hung := make(chan struct{})
		dead := loop.Watch(loop.EachStep, func(ctx context.Context, _ loop.Report) error { // a server that never answers
			<-ctx.Done()
			close(hung)
			return ctx.Err()
		})
		dropped := map[string]int64{}
		background := callbacks.Background{Queue: 4, Dropped: func(name string, n int64) { dropped[name] = n }}
		start := time.Now()
		var ran time.Duration
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(tick))).Run(t.Context(), 0, numbers(1000),
			attend("clock", loop.EachStep, func() loop.Attendant {
				return &attendant{watch: func() { ran = time.Since(start) }}
			}),
			background.Of(quick.option("quick")), background.Of(slow.option("slow")), background.Of(dead))
		require.Equal(t, time.Second, ran, "no step waited")
		require.EqualValues(t, 1000, result.Elapsed.Steps)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, strings.Count(err.Error(), "at the end"), "%v", err)
		<-hung
		require.Len(t, quick.steps, 1000)
		require.EqualValues(t, 1000, slow.steps[len(slow.steps)-1], "the newest stays")
		require.IsIncreasing(t, slow.steps)
		require.Equal(t, map[string]int64{"each step: slow": 1000 - int64(len(slow.steps)), "each step": 999}, dropped)
		require.Equal(t, []int{1, 1}, []int{quick.ended, slow.ended})
		t.Logf("F35: 1000 steps of 1 ms took %s beside writers of 0, 100 ms and for ever; dropped %v", ran, dropped)
	})
}

func TestF35_errorsInTheBackground(t *testing.T) {
	boom := errors.New("500")
	for _, row := range []struct {
		name   string
		fails  func(step int64) error
		err    string
		steps  int64
		reason loop.Reason
		strict bool
	}{
		{name: "one", steps: 9, reason: loop.Failed, fails: on(3, boom),
			err: "loop: at the end: step 9: each step: tracker: in the background, at step 3: 500"},
		{name: "several", steps: 9, reason: loop.Failed, fails: func(int64) error { return boom },
			err: "loop: at the end: step 9: each step: tracker: 9 errors, the first in the background, at step 1: 500"},
		{name: "strict", strict: true, steps: 4, reason: loop.Failed, fails: on(3, boom),
			err: "loop: step 4: each step: tracker: in the background, at step 3: 500"},
		{name: "a panic", steps: 9, reason: loop.Failed, fails: func(n int64) error {
			if n == 3 {
				panic(boom)
			}
			return nil
		}, err: "loop: at the end: step 9: each step: tracker: in the background, at step 3: panic: 500"},
		{name: "a goexit", steps: 9, reason: loop.Failed, fails: func(n int64) error {
			if n == 3 {
				runtime.Goexit()
			}
			return nil
		}, err: "loop: at the end: step 9: each step: tracker: in the background, at step 3: runtime.Goexit was called"},
		{name: "a wish to stop", steps: 4, reason: loop.Stopped, fails: on(3, loop.ErrStop)},
		{name: "none", steps: 9, reason: loop.DataEnded},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &writer{fails: row.fails}
				result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(tick))).Run(t.Context(), 0, numbers(9),
					callbacks.Background{Strict: row.strict}.Of(w.option("tracker")))
				if row.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, row.err)
				}
				require.Equal(t, row.reason, result.Reason)
				require.Equal(t, row.steps, result.Elapsed.Steps)
				require.Equal(t, 1, w.ended)
				if row.name == "a wish to stop" {
					require.ErrorContains(t, result.Stop, "in the background, at step 3: stop")
				}
			})
		})
	}
}

func on(step int64, err error) func(int64) error {
	return func(n int64) error {
		if n == step {
			return err
		}
		return nil
	}
}

// By hand, in the words of clu's AsyncWriter: an error comes with the next write, once; closing flushes, then closes.
func TestB97_backgroundByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		a, b := &writer{fails: on(1, boom)}, &writer{each: time.Second}
		asyncA, err := byHand(callbacks.Background{Strict: true}.Of(a.option("a")))
		require.NoError(t, err)
		asyncB, err := byHand(callbacks.Background{}.Of(b.option("b")))
		require.NoError(t, err)
		write := func(step int64) error {
			r := loop.Report{Elapsed: loop.Elapsed{Steps: step}}
			return errors.Join(asyncA.Watch(t.Context(), r), asyncB.Watch(t.Context(), r))
		}
		require.NoError(t, write(1))
		synctest.Wait()
		require.ErrorIs(t, write(2), boom, "the next write")
		require.NoError(t, write(3), "and only that")
		synctest.Wait()
		require.NoError(t, asyncA.End(t.Context(), loop.Ending{}))
		require.NoError(t, asyncB.End(t.Context(), loop.Ending{}))
		require.Equal(t, []int64{1, 3}, a.steps)
		require.Equal(t, []int64{1, 2, 3}, b.steps, "all is written before the end")
		require.Equal(t, []int{1, 1}, []int{a.ended, b.ended})
		c := &writer{}
		asyncC, err := byHand(callbacks.Background{}.Of(c.option("c")))
		require.NoError(t, err)
		require.NoError(t, asyncC.End(t.Context(), loop.Ending{}))
		require.Equal(t, 1, c.ended, "without a report too")
	})
}

// Reports that are not dropped arrive in order and unchanged by what the loop does later.
func TestBackground_keepsOrderAndValues(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(r, "steps")
		queue := rapid.IntRange(1, 20).Draw(r, "queue")
		every := rapid.Int64Range(1, 5).Draw(r, "every")
		var seen []int64
		var dropped int64
		look := loop.Watch(loop.Every(loop.Steps(every)).AndAtEnd(), func(_ context.Context, report loop.Report) error {
			if report.History != nil || report.State() != nil {
				return errors.New("history or state")
			}
			if report.Elapsed.Steps == 0 {
				return nil
			}
			runtime.Gosched()
			v, err := report.Latest.Float("sum")
			if want := report.Elapsed.Steps * (report.Elapsed.Steps - 1) / 2; err != nil || int64(v) != want {
				return fmt.Errorf("step %d: %v, want %d (%w)", report.Elapsed.Steps, v, want, err)
			}
			seen = append(seen, report.Elapsed.Steps)
			return nil
		})
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(r.Context(), 0, numbers(n),
			callbacks.Background{Queue: queue, Dropped: func(_ string, n int64) { dropped = n }}.Of(look))
		require.NoError(r, err)
		require.IsNonDecreasing(r, append(seen, int64(n)))
		due := int64(n) / every
		if n > 0 {
			due++ // at the end
		}
		require.Equal(r, due, int64(len(seen))+dropped)
	})
}

func TestBackground_takesOptionsThatAreMadeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		path := filepath.Join(t.TempDir(), "run.jsonl")
		var late atomic.Int64
		var b callbacks.Background
		options := loop.Options(b.Of(callbacks.ProgressBar(&out)), b.Of(callbacks.JSONL(path, loop.EachStep)), nil,
			b.Of(loop.WatchEntry("n", func(context.Context, loop.Report) error { late.Add(1); return nil })))
		for range 2 {
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(tick))).Run(t.Context(), 0, numbers(50), loop.Until(loop.Steps(50)), options)
			require.NoError(t, err)
			require.Equal(t, "50/50 - 0.1s - n: 49.0000 - 1,000 examples/s", lastLine(out.String()))
			lines, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 50, bytes.Count(lines, []byte("\n")))
		}
		require.EqualValues(t, 100, late.Load())
	})
}

func TestBackground_refuses(t *testing.T) {
	w := &writer{}
	for _, row := range []struct {
		name   string
		option loop.Option
		err    string
	}{
		{"who looks first", callbacks.Background{}.Of(callbacks.Measure(func(callbacks.Timing) {})), "loop: callback 1 (at end: measure): background: the callback must run before the others (Order below 0), which a background callback cannot do"},
		{"a wrong one", callbacks.Background{}.Of(callbacks.TimeLimit(0)), "loop: callback 1 (never: time limit): it must be positive, got 0s"},
		{"a queue of less than nothing", callbacks.Background{Queue: -1}.Of(w.option("w")), "loop: callback 1 (each step: w): background: queue and deadline must not be negative, got -1 and 0s"},
		{"no watcher", callbacks.Background{}.Of(loop.Watch(loop.EachStep, nil)), "loop: callback 1 (each step): no function given"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), row.option)
			require.EqualError(t, err, row.err)
		})
	}
}

type observer struct{ writer }

func (*observer) At(int64, abilities.Activity) {}

// A callback that a run refuses also cannot start in a hand-written loop, and one that must be called outside its
// schedule is refused.
func TestBackground_refusesByHandToo(t *testing.T) {
	for name, c := range map[string]loop.Callback{
		"callbacks: w: background: queue":                                    callbacks.Background{Queue: -1}.Of((&writer{}).option("w")),
		"callbacks: measure: background: the callback must run before":       callbacks.Background{}.Of(callbacks.Measure(func(callbacks.Timing) {})),
		"callbacks: time limit: it must be positive, got 0s":                 callbacks.TimeLimit(0),
		"callbacks: watchdog: limit must be positive, got 0s":                callbacks.Watchdog(0, nil),
		"callbacks: o: background: the run calls a *callbacks_test.observer": callbacks.Background{}.Of(attend("o", loop.EachStep, func() loop.Attendant { return &observer{} })),
	} {
		_, err := byHand(c)
		require.ErrorContains(t, err, name)
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9),
		callbacks.Background{}.Of(attend("o", loop.EachStep, func() loop.Attendant { return &observer{} })))
	require.ErrorContains(t, err, "loop: at the start: step 0: each step: o: background: the run calls a *callbacks_test.observer")
}

// F35: a writer that ignores its context is abandoned, and the run still ends.
func TestF35_aWriterThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ended := false
		hangs := attend("hangs", loop.EachStep, func() loop.Attendant {
			return &attendant{watch: func() { <-release }, end: func() { ended = true }}
		})
		start := time.Now()
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(tick))).Run(t.Context(), 0, numbers(9), callbacks.Background{Deadline: 5 * time.Second}.Of(hangs))
		require.EqualError(t, err, "loop: at the end: step 9: each step: hangs: not done 6s after the end of the run: its goroutine was abandoned")
		require.EqualValues(t, 9, result.Elapsed.Steps)
		require.Equal(t, 6*time.Second+9*time.Millisecond, time.Since(start))
		close(release)
		synctest.Wait()
		require.True(t, ended, "when it comes back it is told")
	})
}

func BenchmarkBackgroundTurn(b *testing.B) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(threeLogs)))
	b.ReportAllocs()
	_, err := l.Run(context.Background(), 0, loop.Data[int](forever), loop.Until(loop.Steps(b.N)), loop.Keep(loop.Never),
		callbacks.Background{}.Of(loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { return nil })))
	if err != nil {
		b.Fatal(err)
	}
}

// The oldest report is dropped, because the newest has the current state.
func TestBackground_dropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{each: time.Second}
		var dropped int64
		async, err := byHand(callbacks.Background{Queue: 2, Dropped: func(_ string, n int64) { dropped = n }}.Of(w.option("w")))
		require.NoError(t, err)
		for step := range int64(5) {
			require.NoError(t, async.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step + 1}}))
			synctest.Wait() // it is busy with the first
		}
		require.NoError(t, async.End(t.Context(), loop.Ending{}))
		require.Equal(t, []int64{1, 4, 5}, w.steps)
		require.EqualValues(t, 2, dropped)
	})
}

// Reports that are queued when a run is cancelled are still written.
func TestBackground_ofACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		written := 0
		write := loop.Watch(loop.EachStep, func(ctx context.Context, r loop.Report) error {
			time.Sleep(time.Second)
			if r.Elapsed.Steps == 3 {
				cancel()
			}
			written++
			return ctx.Err()
		})
		slow := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			time.Sleep(400 * time.Millisecond)
			return s, loop.Logs{}, nil
		}
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(slow))).Run(ctx, 0, numbers(1000), callbacks.Background{}.Of(write))
		require.Equal(t, loop.Cancelled, result.Reason)
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "background")
		require.EqualValues(t, result.Elapsed.Steps, written)
		require.Greater(t, written, 5)
	})
}

// A callback that may change the state cannot run in the background.
func TestBackground_refusesChanges(t *testing.T) {
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(3), callbacks.Background{}.Of(callbacks.KeepBest("x")))
	require.ErrorContains(t, err, "background: the callback may change the state, which a background callback cannot do")
}
