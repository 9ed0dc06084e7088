package ahead_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/ahead"
)

// Batches are made ahead until the consumer stops, and not after it: a later run then asks for no goroutine.
func TestAhead_whileBatchesAreMade(t *testing.T) {
	var source iter.Seq2[int, error] = func(yield func(int, error) bool) {
		for i := 0; i < 5 && yield(i, nil); i++ {
		}
	}
	for name, batches := range map[string]iter.Seq2[int, error]{
		"Prefetch": data.Prefetch(func(yield func(int, error) bool) {
			require.True(t, ahead.Running())
			source(yield)
		}, 2),
		"ParallelMap": data.ParallelMap(source, 2, func(i int) (int, error) {
			require.True(t, ahead.Running())
			return i, nil
		}),
	} {
		for stop := range 5 {
			for i, err := range batches {
				require.NoError(t, err)
				if i == stop {
					break
				}
			}
			require.False(t, ahead.Running(), name)
		}
	}
}
