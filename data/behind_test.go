package data_test

import (
	"context"
	"iter"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// deaf continues without end after yield returned false.
func deaf(yield func(data.Batch, error) bool) {
	for n := 0; ; n++ {
		yield(data.Batch{Fields: []data.Field{data.Named("x", []float32{float32(n)}, 1)}, Size: 1, At: n}, nil)
	}
}

// A source that continues after yield returned false ends as it would in a plain range, through every function of the
// pipeline.
func TestSourceThatGoesOnBehindYieldsFalse(t *testing.T) {
	type batches = iter.Seq2[data.Batch, error]
	same := func(b data.Batch) (data.Batch, error) { return b, nil }
	join := func(a, _ data.Batch) (data.Batch, error) { return a, nil }
	heeds := batches(func(yield func(data.Batch, error) bool) {
		for yield(data.Batch{}, nil) {
		}
	})
	for name, source := range map[string]batches{
		"plain":                     deaf,
		"prefetch":                  data.Prefetch(deaf, 2),
		"prefetch far":              data.Prefetch(deaf, 64),
		"prefetch twice":            data.Prefetch(data.Prefetch(deaf, 2), 2),
		"parallel map":              data.ParallelMap(deaf, 2, same),
		"map":                       data.Map(deaf, same),
		"filter":                    data.Filter(deaf, func(data.Batch) bool { return true }),
		"zip, first":                data.Zip(deaf, heeds, join),
		"zip, second":               data.Zip(heeds, deaf, join),
		"interleave":                data.Interleave(1, heeds, deaf),
		"take":                      data.Take(deaf, 100),
		"repeat":                    data.Repeat(deaf, math.MaxInt),
		"passes":                    data.Passes(func(int) batches { return deaf }),
		"shuffle buffer":            data.ShuffleBuffer(deaf, 2, 1),
		"shard":                     data.Shard(deaf, 0, 1),
		"rebatch":                   data.Rebatch(deaf, 1, data.Kept),
		"checked":                   data.Checked(deaf),
		"cache":                     data.Cache(deaf),
		"prefetch of an interleave": data.Prefetch(data.Interleave(1, deaf, heeds), 1),
	} {
		t.Run(name, func(t *testing.T) {
			type end struct {
				panicked any
				err      error
				n        int
			}
			ends := make(chan end, 2)
			go func() {
				var e end
				defer func() { e.panicked = recover(); ends <- e }()
				for _, err := range source {
					require.NoError(t, err)
					if e.n++; e.n == 8 {
						break
					}
				}
			}()
			go func() {
				result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, _ data.Batch) (int, loop.Logs, error) { return s + 1, loop.Logs{}, nil }))).
					Run(t.Context(), 0, loop.Data[data.Batch](source), loop.Until(loop.Steps(8)))
				ends <- end{nil, err, result.State}
			}()
			for range 2 {
				select {
				case e := <-ends:
					require.Equal(t, 8, e.n)
					told := e.err
					if told == nil {
						told, _ = e.panicked.(error)
					} else {
						require.ErrorContains(t, told, "loop: step 8: data: panic: ")
					}
					require.ErrorContains(t, told, "continued iteration after function for loop body returned false")
					var fault runtime.Error
					require.ErrorAs(t, told, &fault)
				case <-time.After(10 * time.Second):
					t.Fatal("it does not end")
				}
			}
		})
	}
}

// A fault of a source in a defer, after it was stopped, is not lost. If the consumer panicked, its own panic is
// reported.
func TestPrefetchTellsWhatTheSourceDoesWhenStopped(t *testing.T) {
	for want, end := range map[string]func(){
		"the source: panic: cleanup":            func() { panic("cleanup") },
		"the source: runtime.Goexit was called": runtime.Goexit,
	} {
		source := data.Prefetch(func(yield func(int, error) bool) {
			defer end()
			for yield(1, nil) {
			}
		}, 3)
		ranged := func(body func()) (told any) {
			defer func() { told = recover() }()
			for range source {
				body()
				break
			}
			return nil
		}
		err, _ := ranged(func() {}).(error)
		require.ErrorContains(t, err, "data: prefetch: "+want)
		require.Equal(t, "mine", ranged(func() { panic("mine") }))
	}
}
