package checkpoint_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// The best state of all processes of the run is restored. The folder keeps it together with the newest.
func TestKeepBest_survivesRestarts(t *testing.T) {
	try := func(m *vfs.Mem, until loop.Steps) loop.Result[*counter] {
		f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
		result, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(until),
			f.Resume(checkpoint.Every(loop.Steps(20)), checkpoint.Options{Best: "test", Mode: loop.Lowest}))
		require.NoError(t, err)
		require.LessOrEqual(t, len(steps(t, f)), 2)
		require.NoError(t, f.Close())
		return result
	}
	whole := try(&vfs.Mem{}, 200)
	best, bestAt, err := whole.History.Best("test", loop.Lowest)
	require.NoError(t, err)
	require.Less(t, bestAt.Steps, int64(190), "not simply the last one")
	require.Equal(t, best, math.Cos(whole.State.Weight*5), "the state is that of the best evaluation")
	at := loop.Steps(bestAt.Steps)
	for _, stops := range [][]loop.Steps{{at - 3}, {at}, {at + 3, at + 9}, {200}} {
		m := &vfs.Mem{}
		for _, stop := range stops {
			try(m, stop)
		}
		require.Equal(t, whole.State.Weight, try(m, 200).State.Weight, "stopped at %v", stops)
	}
}

// A folder that keeps all keeps all with KeepBest too. The name of a metric decides which value is the best.
func TestKeepBest_ofAFolderThatKeepsAll(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	result, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(60)), f.Resume(checkpoint.Every(loop.Steps(10)), checkpoint.KeepBest("loss")))
	require.NoError(t, err)
	best, bestAt, err := result.History.Best("loss", loop.Lowest)
	require.NoError(t, err)
	require.Equal(t, best, result.State.Weight)
	require.Greater(t, len(steps(t, f)), 2)
	require.Subset(t, steps(t, f), []checkpoint.Step{60, checkpoint.Step(bestAt.Steps)})
}
