package loop_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// asks is asked at each border.
type asks struct{ does func() bool }

func (asks) Watch(context.Context, loop.Report) error { return nil }
func (asks) End(context.Context, loop.Ending) error   { return nil }
func (a asks) Interrupts() bool                       { return a.does() }

// A read while the run is at work is refused nothing and waits for nothing: the run may wait for it.
func TestS03_aReaderBesideTheRunIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, asked := &weight{}, 0
		ask := func() bool {
			_, err := w.readBeside()
			require.NoError(t, err)
			asked++
			return false
		}
		step := learner{block: 8, sizes: new([]int), comes: func(int) error { ask(); return nil }}
		asking := attend("asking", loop.Never, func() loop.Attendant { return asks{ask} })
		_, err := loop.New(loop.On[*weight, int](loop.EachStep, step)).Run(t.Context(), w, numbers(40), asking)
		require.NoError(t, err)
		require.Greater(t, asked, 40)
		require.Equal(t, 8, slices.Max(*step.sizes), "batches waited")
	})
}

// Goroutines that read all the time do not change the run.
func TestS03_readersAtAnyTime(t *testing.T) {
	for _, cancellable := range []bool{true, false} {
		ctx := context.Background()
		if cancellable {
			ctx = t.Context()
		}
		w, over, source := &weight{}, make(chan struct{}), 0
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for last := 0; ; {
					select {
					case <-over:
						return
					default:
					}
					v, err := w.read()
					if err != nil || v < last {
						t.Errorf("%d after %d, %v", v, last, err)
						return
					}
					last = v
					runtime.Gosched()
				}
			})
		}
		data := loop.Data[int](func(yield func(int, error) bool) {
			for i := range 3000 {
				if i%7 == 0 {
					v, err := w.readBeside()
					if source++; v != i || err != nil {
						yield(0, fmt.Errorf("%d before step %d: %w", v, i, err))
						return
					}
				}
				if !yield(1, nil) {
					return
				}
			}
		})
		result, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8})).Run(ctx, w, data)
		close(over)
		readers.Wait()
		require.NoError(t, err)
		require.EqualValues(t, 3000, result.Elapsed.Steps)
		require.EqualValues(t, 3000, result.History.Len())
		require.Equal(t, 3000, w.value)
		require.Equal(t, 429, source)
	}
}

// A read after the context ended and the source was abandoned makes no step.
func TestS03_aReadAfterTheSourceWasLeft(t *testing.T) {
	for _, beside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, let, came := &weight{}, make(chan struct{}), make(chan error)
			data := loop.Data[int](func(yield func(int, error) bool) {
				for range 5 {
					yield(1, nil)
				}
				w.mu.Lock()
				late := &weight{onRead: w.onRead} // a read that began before
				w.mu.Unlock()
				<-let
				read := late.read
				if beside {
					read = late.readBeside
				}
				_, err := read()
				came <- err
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8})).Run(ctx, w, data)
			require.ErrorIs(t, err, loop.ErrSourceLeft)
			require.Equal(t, 5, w.value, "the steps that waited are made")
			close(let)
			require.NoError(t, <-came)
		})
	}
}

// A source that is asked for a batch ahead, to know whether the one before ends its epoch, cannot see its step.
func TestS03_aReadWhileABatchIsTakenAhead(t *testing.T) {
	t.Run("in the source", func(t *testing.T) { aReadWhileABatchIsTakenAhead(t, (*weight).read) })
	t.Run("on another goroutine", func(t *testing.T) { aReadWhileABatchIsTakenAhead(t, (*weight).readBeside) })
}

func aReadWhileABatchIsTakenAhead(t *testing.T, read func(*weight) (int, error)) {
	w := &weight{}
	data := loop.Data[int](func(yield func(int, error) bool) {
		for range 4 {
			_, err := read(w)
			if !yield(1, err) || err != nil {
				return
			}
		}
	})
	l := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 1}))
	_, err := l.Run(t.Context(), w, data, loop.Until(loop.Epochs(2)))
	require.EqualError(t, err, "loop: step 2: data: the state was read by the data while a batch is taken ahead, to know whether it ends its epoch: "+
		"count in steps, or give the batches the method InEpoch")
	_, err = l.Run(t.Context(), &weight{}, data, loop.Until(loop.Steps(3)))
	require.NoError(t, err)
}

// A plain iterator that reads the state makes other batches on the way to its position, and would continue with other
// data.
func TestS03_readWhileBatchesAreLeftOut(t *testing.T) {
	w := &weight{}
	reads := func(from int) loop.Data[int] {
		return func(yield func(int, error) bool) {
			for i := range 6 {
				value := 0
				if i >= from {
					var err error
					if value, err = w.read(); err != nil {
						yield(0, err)
						return
					}
				}
				if !yield(value+1, nil) {
					return
				}
			}
		}
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, w *weight, n int) (*weight, loop.Logs, error) {
		w.value += n
		return w, loop.Logs{}, nil
	})))
	part, err := l.Run(t.Context(), w, reads(0), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	_, err = l.Run(t.Context(), w, reads(0), loop.Continue(part.Elapsed, part.History))
	require.ErrorContains(t, err, "the state was read by the data while the batches of the earlier run are skipped")
	_, err = l.Run(t.Context(), w, reads(3), loop.Continue(part.Elapsed, part.History))
	require.NoError(t, err, "it reads from the position on")
}
