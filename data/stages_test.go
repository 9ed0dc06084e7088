package data

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What each stage takes is noted under its name, once.
func TestTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := New(X(make([]float32, 8*2*2*1), 8, 2, 2, 1))
		require.NoError(t, err)
		slow := func(b Batch) (Batch, error) {
			time.Sleep(time.Second)
			b.Note("augment", time.Minute)
			time.Sleep(time.Minute)
			return b, nil
		}
		set, err = set.MapBatches(slow)
		require.NoError(t, err)
		var stages Stages
		for range 2 { // passes add up
			for b, err := range set.Batches(2, Timed(&stages)).All() {
				require.NoError(t, err)
				require.Equal(t, 2, b.Size)
			}
		}
		times := maps.Collect(stages.All())
		require.Equal(t, map[string]time.Duration{"copy": 0, "augment": 8 * time.Minute, "map": 8 * time.Second}, times, "the clock of the test stands in all but the sleep")
		stages.Note("tokenize", time.Minute)
		var names []string
		for name := range stages.All() {
			names = append(names, name)
		}
		require.Equal(t, []string{"copy", "augment", "map", "tokenize"}, names, "in the order of their first notes")
		for b, err := range set.Batches(2, Timed(&stages), Timed(nil)).All() {
			require.NoError(t, err)
			require.Equal(t, 2, b.Size)
		}
		require.Equal(t, 8*time.Second, maps.Collect(stages.All())["map"], "nil notes nothing")
	})
}
