package loop_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// soakTurns is the number of iterations of the memory test; the nightly form makes ten times as many.
var soakTurns = int64(1_000_000)

// F19, the loop's part: a long run with a bounded history needs no more memory at its end than near its beginning.
//
//lazo:norace
func TestF19_memoryStaysFlat(t *testing.T) {
	var first, last uint64
	measure := func(_ context.Context, r loop.Report) error {
		last = heap()
		if first == 0 {
			first = last
		}
		return nil
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(threeLogs))).Run(t.Context(), 0, loop.Data[int](forever), loop.Thin(1000),
		loop.Until(loop.Steps(soakTurns)), loop.Watch(loop.Every(loop.Steps(soakTurns/10)), measure))
	require.NoError(t, err)
	require.LessOrEqual(t, result.History.Len(), 1000)
	require.Less(t, int64(last)-int64(first), int64(256<<10), "bytes")
	t.Logf("F19: %d turns: %d KiB after the first tenth, %d KiB at the end", soakTurns, first>>10, last>>10)
}

// heap is the memory that is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
