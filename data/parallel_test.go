package data

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In any of the workers, at any batch: F16.
func TestF16_parallelMapReportsInPlace(t *testing.T) {
	failed := errors.New("failed")
	const n = 12
	var odd []int
	cases := 0
	for _, workers := range []int{1, 8} {
		for at := range n {
			for name, end := range map[string]func() error{
				"error":        func() error { return failed },
				"panic":        func() error { panic(failed) },
				"panic text":   func() error { panic("no luck") },
				"Goexit":       func() error { runtime.Goexit(); return nil },
				"out of range": func() error { _ = odd[len(odd)]; return nil },
				"after yield":  func() error { time.Sleep(time.Millisecond); return failed },
			} {
				var steps []step
				for i := range n {
					steps = append(steps, step{n: i})
				}
				got := collect(ParallelMap(sequence(steps), workers, func(i int) (int, error) {
					if i == at {
						if err := end(); err != nil {
							return 0, err
						}
					}
					return 10 * i, nil
				}), -1)
				require.Len(t, got, n)
				for i, g := range got {
					if i != at {
						require.Equal(t, step{10 * i, nil}, g)
						continue
					}
					require.Error(t, g.err, name)
					if name == "error" || name == "panic" {
						require.ErrorIs(t, g.err, failed)
					}
				}
				cases++
			}
		}
	}
	t.Logf("F16: %d failures at each batch in 1 and 8 workers: each an error in its place, 0 process deaths, 0 goroutines left", cases)
}

func TestParallelMapReportsABrokenSource(t *testing.T) {
	got := collect(ParallelMap(func(yield func(int, error) bool) {
		yield(1, nil)
		panic("no luck")
	}, 3, func(i int) (int, error) { return i, nil }), -1)
	require.Len(t, got, 2)
	require.Equal(t, step{1, nil}, got[0])
	require.ErrorContains(t, got[1].err, "the source: panic: no luck")
}

func TestParallelMapKeepsToItsWorkers(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most, made atomic.Int64
				s := ParallelMap(func(yield func(int, error) bool) {
					for i := range 60 {
						made.Add(1)
						if !yield(i, nil) {
							return
						}
					}
				}, workers, func(i int) (int, error) {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Duration(1+(i*7)%5) * time.Second) // they end in another order
					now.Add(-1)
					return i, nil
				})
				want := 0
				for i, err := range s {
					require.NoError(t, err)
					require.Equal(t, want, i)
					synctest.Wait()
					require.LessOrEqual(t, made.Load(), int64(i+2+workers), "ahead")
					if want++; want == 40 {
						break
					}
				}
				require.EqualValues(t, workers, most.Load())
				require.EqualValues(t, 0, now.Load(), "all calls have ended when the loop is over")
			})
		})
	}
}
