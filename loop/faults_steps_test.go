package loop_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

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
