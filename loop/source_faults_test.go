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

	"github.com/lazo-ml/lazo/loop"
)

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
