package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// Sums, products, minima and maxima of two dtypes at once over two replicas.
func TestAllReduce(t *testing.T) {
	d := twoDevices(t)
	for _, row := range []struct {
		name  string
		kind  compute.ReduceOpType
		f     []float32
		i     int32
		large []float32
	}{
		{"sum", compute.ReduceOpSum, []float32{4, 6}, 12, []float32{30}},
		{"product", compute.ReduceOpProduct, []float32{3, 8}, 35, []float32{200}},
		{"max", compute.ReduceOpMax, []float32{3, 4}, 7, []float32{20}},
		{"min", compute.ReduceOpMin, []float32{1, 2}, 5, []float32{10}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := programOf(hlo.New("reduce", d.compile))
			require.NoError(t, b.DistributedSPMD(2))
			require.NoError(t, b.DeviceAssignment(0, 1))
			do := must1(t)
			x, y := do(b.Parameter("x", shapes.Make(dtypes.Float32, 2), nil)), do(b.Parameter("y", shapes.Make(dtypes.Int32), nil))
			z := do(b.Parameter("z", shapes.Make(dtypes.Float32, 1), nil))
			out, err := b.AllReduce([]compute.Value{x, y, z}, row.kind, [][]int{{0, 1}})
			require.NoError(t, err)
			exec, err := b.Finish(out)
			require.NoError(t, err)
			defer exec.Finalize()
			got, err := execute(d, exec, 2,
				of([]int{2}, float32(1), 2), of(nil, int32(5)), of([]int{1}, float32(10)),
				of([]int{2}, float32(3), 4), of(nil, int32(7)), of([]int{1}, float32(20)))
			require.NoError(t, err)
			require.Len(t, got, 6)
			for replica := range 2 {
				require.Equal(t, row.f, got[3*replica].flat)
				require.Equal(t, []int32{row.i}, got[3*replica+1].flat)
				require.Equal(t, row.large, got[3*replica+2].flat)
			}
			require.Equal(t, 2, d.last.Devices.Replicas)
			require.Equal(t, []compute.DeviceNum{0, 1}, d.last.Devices.Assignment)
		})
	}
}
