package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

func twoDevices(t *testing.T) *device {
	d := open(t)
	require.Equal(t, 2, d.NumDevices())
	return d
}

// An all-reduce in the steps of one program.
func TestReplicaSteps(t *testing.T) {
	d := twoDevices(t)
	step := moduleOf(t, "step", func(b program) []compute.Value {
		do := must1(t)
		require.NoError(t, b.DistributedSPMD(2))
		w, x := do(b.Parameter("w", shapes.Make(dtypes.Float32), nil)), do(b.Parameter("x", shapes.Make(dtypes.Float32), nil))
		sum, err := b.AllReduce([]compute.Value{x}, compute.ReduceOpSum, [][]int{{0, 1}})
		require.NoError(t, err)
		require.NoError(t, b.InPlace(0, 0))
		return []compute.Value{do(b.Add(w, sum[0])), sum[0]}
	})
	looped, err := step.Steps(3, 1)
	require.NoError(t, err)
	exec, err := d.compile(looped)
	require.NoError(t, err)
	defer exec.Finalize()
	got, err := execute(d, exec, 2,
		of(nil, float32(0)), of([]int{3}, float32(1), 2, 3), of(nil, int32(3)),
		of(nil, float32(100)), of([]int{3}, float32(10), 20, 30), of(nil, int32(3)))
	require.NoError(t, err)
	require.Equal(t, []float32{66}, got[0].flat)
	require.Equal(t, []float32{11, 22, 33}, got[1].flat)
	require.Equal(t, []float32{166}, got[2].flat)
}
