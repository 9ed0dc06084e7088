package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// A schedule is due as often as its period fits, however the iterations divide the time, so a run can be resumed.
func TestEvery_countsWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(t, "period")
		s := loop.Every(loop.Samples(n))
		var before loop.Elapsed
		fired := map[int64]bool{}
		for _, batch := range rapid.SliceOfN(rapid.Int64Range(1, 7), 0, 60).Draw(t, "batches") {
			after := before
			after.Steps, after.Samples = after.Steps+1, after.Samples+batch
			if s.Due(before, after) {
				fired[after.Samples/n] = true
			} else if after.Samples/n != before.Samples/n {
				t.Fatalf("missed a multiple of %d between %d and %d", n, before.Samples, after.Samples)
			}
			before = after
		}
		for k := range fired {
			if k < 1 || k > before.Samples/n {
				t.Fatalf("fired for %d·%d at most %d", k, n, before.Samples)
			}
		}
	})
}

func TestEvery_firesOnceForEachFullPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.Int64Range(0, 300).Draw(t, "n"), rapid.Int64Range(1, 50).Draw(t, "k")
		require.Len(t, firings(every(k), n), int(n/k))
		j := rapid.Int64Range(1, 50).Draw(t, "after")
		require.Len(t, firings(loop.Never.Then(loop.Steps(j), loop.Every(loop.Steps(k))), n), int(max(n-j, 0)/k))
	})
}
