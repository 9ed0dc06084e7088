package loop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

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
	t.Logf("R24: %d runs over sources that block for ever, each ended at most %v after its context, with the state of its border", rows, longest)
}

// An abandoned goroutine holds nothing of the run: the state is freed although its data is stuck.
func TestR24_whatIsLeftBehindHoldsNothing(t *testing.T) {
	let := make(chan struct{})
	defer close(let)
	ctx, cancel := context.WithCancel(t.Context())
	state := func() weak.Pointer[[1 << 20]byte] {
		state := new([1 << 20]byte)
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s *[1 << 20]byte, _ int) (*[1 << 20]byte, loop.Logs, error) {
			return s, loop.Logs{}, nil
		}))).Run(ctx, state, loop.Data[int](func(yield func(int, error) bool) {
			yield(1, nil)
			cancel()
			<-let
		}))
		require.ErrorIs(t, err, loop.ErrSourceLeft)
		return weak.Make(state)
	}()
	runtime.GC()
	require.Nil(t, state.Value())
}

// The batch that the loop has asked for when its context ends has its turn, if it comes: else the data would be a batch
// further than the state that is saved.
func TestR12_anInterruptWhileWaitingForData(t *testing.T) {
	home := errors.New("home")
	for _, size := range []int{1, 8} {
		for at := 1; at <= 12; at++ {
			t.Run(fmt.Sprintf("blocks of %d, batch %d", size, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					position := 0
					source := func(yield func(int, error) bool) {
						for {
							time.Sleep(time.Millisecond)
							if position+1 == at {
								cancel(home)
							}
							position++
							if !yield(1, nil) {
								return
							}
						}
					}
					saved := loop.Ending{}
					a := adder{size: size, takes: time.Microsecond}
					result, err := loop.New(loop.On[int, int](loop.EachStep, heeds{a})).Run(ctx, 0, loop.Data[int](source), attend("", loop.Never, func() loop.Attendant {
						return onEnd(func(e loop.Ending) { saved = e })
					}))
					require.ErrorIs(t, err, home)
					require.NotErrorIs(t, err, loop.ErrSourceLeft)
					require.EqualValues(t, position, saved.Elapsed.Steps)
					require.Equal(t, position, result.State)
					require.Equal(t, at, position)
					require.Zero(t, saved.Ahead)
					require.False(t, saved.Partial)
				})
			})
		}
	}
}

// heeds is an adder that begins no step after a cancellation.
type heeds struct{ adder }

func (h heeds) Step(ctx context.Context, s, b int) (int, loop.Logs, error) {
	if err := context.Cause(ctx); err != nil {
		return s, loop.Logs{}, err
	}
	return h.adder.Step(ctx, s, b)
}

func (h heeds) StepBlock(ctx context.Context, s int, b []int) (int, []loop.Logs, error) {
	if err := context.Cause(ctx); err != nil {
		return s, nil, err
	}
	return h.adder.StepBlock(ctx, s, b)
}

type onEnd func(loop.Ending)

func (onEnd) Watch(context.Context, loop.Report) error     { return nil }
func (f onEnd) End(_ context.Context, e loop.Ending) error { f(e); return nil }

// A run reports the batches that are not in the state, so that no callback saves a position of the data that differs
// from the state.
func TestR12_batchesThatWereTakenAndNotTrained(t *testing.T) {
	for _, row := range []struct {
		name  string
		steps loop.Stepper[int, int]
		ahead int64
	}{
		{"a step is broken off", loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
			if s == 3 {
				return s, loop.Logs{}, context.Canceled
			}
			return s + 1, loop.Logs{}, nil
		}), 1},
		{"it asks to stop inside of a block", adder{size: 8, comes: comesAt(5, loop.ErrStop)}, 2}, // blocks of 1, 2, 4
		{"it asks to stop", adder{comes: comesAt(5, loop.ErrStop)}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var end loop.Ending
				_, _ = loop.New(loop.On(loop.EachStep, row.steps)).Run(t.Context(), 0, oneTo(20), attend("", loop.Never, func() loop.Attendant {
					return onEnd(func(e loop.Ending) { end = e })
				}))
				require.Equal(t, row.ahead, end.Ahead)
			})
		})
	}
}

func oneTo(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := 1; i <= n && yield(i, nil); i++ {
		}
	}
}

// Work that is due by time alone waits until no batch is held for a later iteration, so that a save finds the data at
// the position of the state.
func TestR12_whatIsDueByTimeInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		position := int64(0)
		source := func(yield func(int, error) bool) {
			for range 400 {
				position++
				if !yield(1, nil) {
					return
				}
			}
		}
		looks := 0
		first := loop.On(loop.Every(loop.Steps(7)), loop.StepFunc(add)) // in front of the block, which it so breaks up
		result, err := loop.New(first, loop.On[int, int](loop.EachStep, adder{size: 8, takes: time.Millisecond})).Run(t.Context(), 0, loop.Data[int](source),
			loop.Until(loop.Time(300*time.Millisecond)), loop.Watch(loop.Every(loop.Time(5*time.Millisecond)), func(_ context.Context, r loop.Report) error {
				looks++
				require.Equal(t, position, r.Elapsed.Steps)
				require.Zero(t, r.Ahead)
				return nil
			}))
		require.NoError(t, err)
		require.Equal(t, loop.UntilReached, result.Reason)
		require.Equal(t, position, result.Elapsed.Steps)
		require.Greater(t, looks, 30)
	})
}

// The error of a source that was asked to stop names the source, not the last task.
func TestSource_panicsWhenStopped(t *testing.T) {
	for want, source := range map[string]loop.Data[int]{
		"panic: cleanup boom": func(yield func(int, error) bool) {
			defer func() { panic("cleanup boom") }()
			for yield(1, nil) {
			}
		},
		"panic: runtime error: range function continued iteration after function for loop body returned false": func(yield func(int, error) bool) {
			for range 9 {
				yield(1, nil)
			}
		},
		"runtime.Goexit was called": func(yield func(int, error) bool) {
			defer runtime.Goexit()
			for yield(1, nil) {
			}
		},
	} {
		result, err := loop.New(loop.On(loop.Every(loop.Steps(3)), loop.StepFunc(add))).Run(t.Context(), 0, source, loop.Until(loop.Steps(3)))
		require.EqualError(t, err, "loop: step 3: data: "+want)
		require.Equal(t, loop.Failed, result.Reason)
		require.Equal(t, int64(3), result.Elapsed.Steps)
	}
}

// A run that counted no epochs, since nothing depended on them, is continued by one that ends after some: over a plain
// iterator, the passes among the batches left out count.
func TestContinue_countsTheEpochsOfAPlainIterator(t *testing.T) {
	ten := loop.Data[int](func(yield func(int, error) bool) {
		for i := 0; i < 10 && yield(i, nil); i++ {
		}
	})
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	for _, first := range []loop.Option{nil, loop.Until(loop.Steps(4)), loop.Until(loop.Steps(10)), loop.Until(loop.Epochs(1)), loop.Until(loop.Epochs(2))} {
		part, err := l.Run(t.Context(), 0, ten, loop.Options(first))
		require.NoError(t, err)
		for _, epochs := range []int64{2, 3} {
			var ends []int64
			result, err := l.Run(t.Context(), part.State, ten, loop.Continue(part.Elapsed, part.History), loop.Until(loop.Epochs(epochs)),
				loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error { ends = append(ends, r.Elapsed.Steps); return nil }))
			require.NoError(t, err)
			require.Equal(t, 10*epochs, result.Elapsed.Steps)
			require.Equal(t, epochs, result.Elapsed.Epochs)
			if epochs == 3 {
				require.Equal(t, []int64{10, 20, 30}[part.Elapsed.Steps/10:], ends, part.Elapsed)
			}
		}
	}
	whole, err := l.Run(t.Context(), 0, ten, loop.Until(loop.Epochs(2)))
	require.NoError(t, err)
	uncounted := whole.Elapsed
	uncounted.Epochs = 0
	result, err := l.Run(t.Context(), whole.State, ten, loop.Continue(uncounted, whole.History), loop.Until(loop.Epochs(2)))
	require.NoError(t, err)
	require.EqualValues(t, 20, result.Elapsed.Steps, "there is no more to do")

	// Where the earlier run counted, its count stays, also over data that has become shorter.
	half := loop.Data[int](func(yield func(int, error) bool) {
		for i := 0; i < 5 && yield(i, nil); i++ {
		}
	})
	result, err = l.Run(t.Context(), whole.State, half, loop.Continue(whole.Elapsed, whole.History), loop.Until(loop.Epochs(3)))
	require.NoError(t, err)
	require.EqualValues(t, 25, result.Elapsed.Steps)
	require.EqualValues(t, 3, result.Elapsed.Epochs)
}
