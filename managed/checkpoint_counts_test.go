package managed

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// The counts of older versions are scalars of known names; a count of each parameter belongs to this version.
func TestCountsOf(t *testing.T) {
	n := tensors.FromScalar(int64(3))
	given := func(names ...string) map[string]*tensors.Tensor {
		all := map[string]*tensors.Tensor{"/w": tensors.FromValue([]float32{1}), "/step": tensors.FromValue([]int64{1})}
		for _, name := range names {
			all[name] = n
		}
		return all
	}
	of := given("/optimizers/updates", "/global_step", "/AdamOptimizer/step", "/optimizers/accumulate/batches", "/loss")
	from := map[string]origin{"/optimizers/accumulate/batches": {}, "/w": {}}
	old := countsOf(of, from)
	require.False(t, old.own)
	require.Len(t, old.values, 4)
	for _, name := range []string{"/optimizers/updates", "/global_step", "/AdamOptimizer/step", "/optimizers/accumulate/batches"} {
		require.Same(t, n, old.values[name], name)
	}
	require.NotContains(t, of, "/optimizers/accumulate/batches", "no variable has it")
	require.Len(t, from, 1)

	own := countsOf(given("/optimizers/adam/w/count", "/optimizers/updates"), nil)
	require.True(t, own.own)
	require.True(t, isCount("/optimizers/adam/w/count"))
	require.False(t, isCount("/model/count"))
	require.False(t, isCount("/optimizers/counts"))
}

func TestStepsBy_sumsTheStepsOfOtherOptimizers(t *testing.T) {
	steps, err := new(restored).stepsBy(&oldCounts{values: map[string]*tensors.Tensor{
		"/global_step": tensors.FromScalar(int64(100)), "/a/global_step": tensors.FromScalar(int64(7)), "/b/global_step": tensors.FromScalar(int64(5)),
		"/AdamOptimizer/global_step": tensors.FromScalar(int64(50)), "/a/updates": tensors.FromScalar(int64(9)),
	}})
	require.NoError(t, err)
	require.EqualValues(t, 12, steps.Value())
}
