package loop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func TestAwaiter(t *testing.T) {
	broken := errors.New("the device is gone")
	fine := func() error { return nil }
	cancelled := errors.New("enough")
	for _, row := range []struct {
		name    string
		await   func() error
		step    error // at the batch 5
		cancel  bool
		until   loop.Steps
		reason  loop.Reason
		states  []int
		err     string
		matches []error
	}{
		{name: "well", await: fine, reason: loop.DataEnded, states: []int{45}},
		{name: "until", await: fine, until: 3, reason: loop.UntilReached, states: []int{3}},
		{name: "it failed late", await: func() error { return broken }, reason: loop.Failed, states: []int{45},
			err: "loop: step 10: each step: the device is gone", matches: []error{broken}},
		{name: "it panics", await: func() error { panic(broken) }, reason: loop.Failed, states: []int{45}, matches: []error{broken}},
		{name: "a step fails, the ones before are waited for", await: fine, step: errors.New("bad batch"), reason: loop.Failed, states: []int{10},
			err: "loop: step 6: each step: bad batch"},
		{name: "a step fails, and one before failed too", await: func() error { return broken }, step: cancelled, reason: loop.Failed, states: []int{10},
			matches: []error{broken, cancelled}},
		{name: "a stop", await: fine, step: loop.ErrStop, reason: loop.Stopped, states: []int{15}},
		{name: "cancelled: Await is not", await: fine, cancel: true, reason: loop.Cancelled, states: []int{45}, matches: []error{cancelled}},
	} {
		for _, size := range []int{1, 4} {
			t.Run(row.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var states []int
				stepper := lasting{await: row.await, states: &states, adder: &adder{size: size, comes: func(batch int) error {
					if row.cancel && batch == 9 {
						cancel(cancelled)
					}
					if batch == 5 {
						return row.step
					}
					return nil
				}}}
				options := []loop.Option{}
				if row.until > 0 {
					options = append(options, loop.Until(row.until))
				}
				n := 10
				if row.cancel {
					n = 100
				}
				result, err := loop.New(loop.On[int, int](loop.EachStep, stepper)).Run(ctx, 0, numbers(n), options...)
				require.Equal(t, row.reason, result.Reason)
				if row.err != "" {
					require.EqualError(t, err, row.err)
				}
				if row.err == "" && row.matches == nil {
					require.NoError(t, err)
				}
				for _, m := range row.matches {
					require.ErrorIs(t, err, m)
				}
				if !row.cancel || size == 1 {
					require.Equal(t, row.states, states)
				}
				require.Len(t, states, 1)
			})
		}
	}
}

// If all meet the same events, several runs of random programs do together what the reference does alone.
func TestJob_asAlone(t *testing.T) {
	seen := map[string]int{}
	for seen["programs"] < modelPrograms {
		rapid.Check(t, func(t *rapid.T) {
			p := drawProgram(t)
			n, seed := 2+evenly(t, 2, "members"), uint64(evenly(t, 1000, "seed"))
			rapid.SyncTest(t, func(t *rapid.T) {
				want := p.follow(outcome{})
				runs := runMembers(p, n, func(int) bool { return true }, seed, false, true)
				for _, r := range runs {
					seen["blocks"] += r.blocks
					seen[r.result.Reason.String()]++
					if p.cancels() { // seen at the next border at which all meet
						require.Equal(t, runs[0].outcome, r.outcome)
						continue
					}
					require.Equal(t, len(want.errs) > 0, r.err != nil, "%v", r.err)
					for _, e := range want.errs {
						require.Contains(t, r.err.Error(), e)
					}
					got := r.outcome
					require.Equal(t, outcome{state: want.state, at: want.at, reason: want.reason, stop: want.stop}, got)
				}
			})
			seen["programs"]++
		})
	}
	for _, what := range []string{"blocks", "data ended", "until reached", "stopped", "cancelled", "failed"} {
		require.Positive(t, seen[what], "no program had this: %s", what)
	}
	t.Logf("job: %v", seen)
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

func TestMarks_endings(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name         string
		data         loop.Data[int]
		step         error
		start, end   error
		marks, turns int
		reason       loop.Reason
		err          string
	}{
		{name: "goes well", data: numbers(3), marks: 2, turns: 3, reason: loop.DataEnded},
		{name: "no data: no batch to run on", data: numbers(0), reason: loop.DataEnded},
		{name: "stop at the start", data: numbers(3), start: loop.ErrStop, marks: 2, reason: loop.Stopped},
		{name: "stop in a turn", data: numbers(3), step: loop.ErrStop, marks: 2, turns: 1, reason: loop.Stopped},
		{name: "an error at the start", data: numbers(3), start: boom, marks: 1, reason: loop.Failed, err: "loop: step 0: at start: boom"},
		{name: "an error in a turn", data: numbers(3), step: boom, marks: 1, turns: 1, reason: loop.Failed, err: "loop: step 1: each step: boom"},
		{name: "an error at the end", data: numbers(3), end: boom, marks: 2, turns: 3, reason: loop.Failed, err: "loop: step 3: at end: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			marks, turns := 0, 0
			mark := func(err error) func(context.Context, int, int) (int, loop.Logs, error) {
				return func(_ context.Context, s, _ int) (int, loop.Logs, error) { marks++; return s, loop.Logs{}, err }
			}
			l := loop.New(loop.On(loop.AtStart, loop.StepFunc(mark(row.start))), loop.On(loop.AtEnd, loop.StepFunc(mark(row.end))),
				loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { turns++; return s, loop.Logs{}, row.step })))
			result, err := l.Run(t.Context(), 0, row.data)
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, row.err)
			}
			require.Equal(t, row.marks, marks)
			require.Equal(t, row.turns, turns)
			require.Equal(t, row.reason, result.Reason)
		})
	}
}

// A read can end the run, by the steps that it brings about. Then the batch that is being made has no step.
func TestS03_readEndsTheRun(t *testing.T) {
	for _, row := range []struct {
		name  string
		comes func() error // over the fifth step, the second of those that wait
		until loop.Period
		ended
		ahead int64
	}{
		{name: "a step fails", comes: func() error { return errBoom }, ended: ended{reason: loop.Failed, state: 4, err: "loop: step 5: each step: step: boom"}, ahead: 1},
		{name: "a step stops", comes: func() error { return loop.ErrStop }, ended: ended{reason: loop.Stopped, state: 5}},
		{name: "a step panics", comes: func() error { panic("boom") }, ended: ended{reason: loop.Failed, state: 4, err: "loop: step 4: each step: step: panic: "}, ahead: 2},
		{name: "a step exits", comes: func() error { runtime.Goexit(); return nil }, ended: ended{reason: loop.Failed, state: 4, err: "loop: step 4: each step: step: runtime.Goexit was called"}, ahead: 2},
		{name: "the time is over", comes: func() error { time.Sleep(time.Hour); return nil }, until: loop.Time(time.Hour), ended: ended{reason: loop.UntilReached, state: 5}},
	} {
		for i := range 4 {
			cancellable, beside := i%2 == 0, i/2 == 1
			t.Run(row.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := context.Background()
					if cancellable {
						ctx = t.Context()
					}
					read := (*weight).read
					if beside {
						read = (*weight).readBeside
					}
					w, made, more, closed := &weight{}, 0, 0, false
					var unread error
					data := func(yield func(int, error) bool) {
						defer func() { closed = true }()
						for range 5 { // a block of 1, a block of 2, and 2 that wait
							if yield(1, nil) {
								more++
							}
						}
						_, unread = read(w)
						if yield(1, nil) {
							more++
						}
					}
					step := learner{block: 8, comes: func(int) error {
						if made++; made == 5 {
							return row.comes()
						}
						return nil
					}}
					ahead := int64(-1)
					options := []loop.Option{attend("", loop.Never, func() loop.Attendant {
						return lookAtEnd{func(_ context.Context, r loop.Report) error { ahead = r.Ahead; return nil }}
					})}
					if row.until != nil {
						options = append(options, loop.Until(row.until))
					}
					result, err := loop.New(loop.On[*weight, int](loop.EachStep, step).Named("step")).Run(ctx, w, loop.Data[int](data), options...)
					require.Equal(t, row.reason, result.Reason)
					require.Equal(t, row.state, w.value)
					require.Equal(t, 5-row.ahead, result.Elapsed.Steps)
					require.EqualValues(t, 5-row.ahead, result.History.Len())
					require.Equal(t, row.ahead, ahead)
					require.Equal(t, 5, more, "no batch is taken after the read")
					require.True(t, closed)
					require.Empty(t, w.onRead)
					if row.err == "" {
						require.NoError(t, err)
						require.NoError(t, unread)
						return
					}
					require.ErrorContains(t, err, row.err)
					if row.name != "a step exits" { // its goroutine is no more
						require.Equal(t, err, unread)
					}
				})
			})
		}
	}
}

// A context that ends also ends the run within a second, wherever the source blocks: the state is that of the border,
// and the callbacks receive the end. A source that returns later finds no run.
func TestR24_aSourceThatBlocksForEver(t *testing.T) {
	home, boom := errors.New("home"), errors.New("boom")
	const n = 7 // batches that come
	longest, rows := time.Duration(0), 0
	for _, row := range []struct {
		name     string
		atTheEnd bool                  // it blocks when no more is wanted, else when it is asked for more than n
		comes    func(batch int) error // over a step
		inner    bool                  // it is an evaluation's source that blocks
		first    bool                  // there is no batch
		err      error                 // in addition to the context's own; none for a run that was over
		reason   loop.Reason
		steps    int64
	}{
		{name: "in next", err: home, reason: loop.Cancelled, steps: n},
		{name: "in the first next", first: true, err: home, reason: loop.Cancelled},
		{name: "behind the last step", atTheEnd: true, reason: loop.Stopped, comes: comesAt(n, loop.ErrStop), steps: n},
		{name: "behind a step that failed", atTheEnd: true, reason: loop.Failed, comes: comesAt(n, boom), err: boom, steps: n - 1},
		{name: "behind a panic", atTheEnd: true, reason: loop.Failed, comes: func(b int) error {
			if b == n {
				panic(boom)
			}
			return nil
		}, err: boom, steps: n - 1},
		{name: "behind a Goexit", atTheEnd: true, reason: loop.Failed, comes: func(b int) error {
			if b == n {
				runtime.Goexit()
			}
			return nil
		}, err: loop.ErrSourceLeft, steps: n - 1},
		{name: "in an evaluation", inner: true, err: home, reason: loop.Cancelled, steps: 1},
	} {
		for _, wrapped := range []string{"", "map", "prefetch", "parallel map", "interleave"} {
			t.Run(row.name+" "+wrapped, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					let := make(chan struct{})
					var source loop.Data[int] = func(yield func(int, error) bool) {
						for i := 1; !row.first && i <= n && yield(i, nil); i++ {
						}
						<-let
						yield(0, nil)
					}
					if row.atTheEnd {
						source = func(yield func(int, error) bool) {
							defer func() { <-let }()
							for i := 1; yield(i, nil); i++ {
							}
						}
					}
					same := func(b int) (int, error) { return b, nil }
					switch wrapped {
					case "map":
						source = loop.Data[int](data.Map(source.From(0), same))
					case "prefetch":
						source = loop.Data[int](data.Prefetch(source.From(0), 2))
					case "parallel map":
						source = loop.Data[int](data.ParallelMap(source.From(0), 2, same))
					case "interleave":
						source = loop.Data[int](data.Interleave(1, source.From(0)))
					}
					made := 0
					a := adder{size: 8, comes: func(b int) error {
						made++
						if row.comes != nil {
							return row.comes(b)
						}
						return nil
					}}
					for _, stepper := range []loop.Stepper[int, int]{a, a.alone()} {
						if row.name == "behind a panic" || row.name == "behind a Goexit" { // loses all of a block
							stepper = a.alone()
						}
						tasks, given := []loop.Task[int, int]{loop.On(loop.EachStep, stepper)}, source
						if row.inner {
							tasks = append(tasks, loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add))),
								Data: source}.On(loop.EachStep))
							given = numbers(n)
						}
						begin := time.Now()
						ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, home)
						defer cancel()
						ended := 0
						result, err := loop.New(tasks...).Run(ctx, 0, given, attend("", loop.Never, func() loop.Attendant {
							return ender{func() error { ended++; return nil }}
						}))
						took := time.Since(begin) - 10*time.Second
						longest = max(longest, took)
						require.LessOrEqual(t, took, time.Second)
						require.Equal(t, row.reason, result.Reason)
						require.Equal(t, row.steps, result.Elapsed.Steps)
						require.Equal(t, 1, ended)
						if row.err == nil {
							require.NoError(t, err)
						} else {
							require.ErrorIs(t, err, row.err)
							require.ErrorIs(t, err, loop.ErrSourceLeft)
						}
						rows++
					}
					was := made
					close(let)
					synctest.Wait()
					require.Equal(t, was, made, "what comes back finds nobody")
				})
			})
		}
	}
	t.Logf("R24: %d runs over sources that block forever, each ended at most %v after its context, with the state of its border", rows, longest)
}
