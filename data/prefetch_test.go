package data

import (
	"errors"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/shield"
)

type step struct {
	n   int
	err error
}

func sequence(steps []step) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for _, s := range steps {
			if !yield(s.n, s.err) {
				return
			}
		}
	}
}

func collect(s iter.Seq2[int, error], most int) []step {
	var got []step
	for n, err := range s {
		got = append(got, step{n, err})
		if len(got) == most {
			break
		}
	}
	return got
}

func TestG15_PrefetchKeepsOrderAndErrors(t *testing.T) {
	failed := errors.New("failed")
	cases, failures := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		steps := make([]step, rapid.IntRange(0, 30).Draw(t, "n"))
		for i := range steps {
			steps[i].n = i
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				steps[i].err = failed
				failures++
			}
		}
		depth := rapid.IntRange(1, 8).Draw(t, "depth")
		most := rapid.IntRange(1, 40).Draw(t, "consumed")
		cases++
		require.Equal(t, collect(sequence(steps), most), collect(Prefetch(sequence(steps), depth), most))
	})
	t.Logf("%d sequences with %d errors: all in their order, 0 process deaths", cases, failures)
}

func TestG15_PrefetchReportsABrokenSource(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name string
		end  func()
		want string
	}{
		{"panic with an error", func() { panic(failed) }, "the source: panic: failed"},
		{"panic with a string", func() { panic("no luck") }, "the source: panic: no luck"},
		{"end of the goroutine", runtime.Goexit, "runtime.Goexit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := collect(Prefetch(func(yield func(int, error) bool) {
				yield(1, nil)
				yield(2, nil)
				c.end()
			}, 1), -1)
			require.Len(t, got, 3)
			require.Equal(t, []step{{1, nil}, {2, nil}}, got[:2], "what was made before arrives")
			require.ErrorContains(t, got[2].err, c.want)
			if c.name == "panic with an error" {
				require.ErrorIs(t, got[2].err, failed)
				var p *shield.Panic
				require.ErrorAs(t, got[2].err, &p)
				require.Contains(t, string(p.Stack), "prefetch_test.go")
			}
		})
	}
	got := collect(Prefetch[int](nil, 1), -1)
	require.Len(t, got, 1)
	require.EqualError(t, got[0].err, "data: prefetch: there is no source (nil)")
	got = collect(Prefetch(sequence(nil), 0), -1)
	require.Len(t, got, 1)
	require.ErrorContains(t, got[0].err, "data: prefetch 0 batches ahead")
}

func TestPrefetchIsSoFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 3
		var made atomic.Int64
		source := func(yield func(int, error) bool) {
			for i := range 100 {
				made.Add(1)
				if !yield(i, nil) {
					return
				}
			}
		}
		for i := range Prefetch(source, depth) {
			synctest.Wait() // until the source can do no more
			require.EqualValues(t, i+1+depth, made.Load())
			if i == 10 {
				break
			}
		}
	})
}

func TestPrefetchWaitsForTheSource(t *testing.T) {
	open := false
	for range Prefetch(func(yield func(int, error) bool) {
		open = true
		defer func() { open = false }()
		for yield(0, nil) {
		}
	}, 2) {
		break
	}
	require.False(t, open, "the source has returned when the loop is over") // the race detector looks at it, too
}

func TestPrefetchOfBatches(t *testing.T) {
	s := numbered(t, 20)
	batches := s.Batches(6, Shuffle(1)).sequence(0, 3)
	require.Equal(t, deal(t, batches, -1), deal(t, Prefetch(batches, 2), -1))
}
