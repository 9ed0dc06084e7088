package hlo_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// A GPU's sum of 64-bit numbers over a sharded axis gathers each device's part; others are left to XLA.
func TestExchange_of64Bits(t *testing.T) {
	for _, row := range []struct {
		name    string
		gpu     bool
		dtype   dtypes.DType
		sharded bool
		apart   bool
	}{
		{"int64", true, dtypes.Int64, true, true},
		{"float64", true, dtypes.Float64, true, true},
		{"float32", true, dtypes.Float32, true, false},
		{"a whole array", true, dtypes.Int64, false, false},
		{"a CPU", false, dtypes.Int64, true, false},
	} {
		var text string
		b := programOf(hlo.New("sum", func(m *hlo.Module) (compute.Executable, error) {
			text = m.Text()
			return &executable{module: m}, nil
		}).ForGPU(row.gpu))
		require.NoError(t, b.DistributedAutoSharding(compute.Mesh{Name: "mesh", AxesNames: []string{"data"}, AxesSizes: []int{2}, LogicalDeviceAssignment: []int{0, 1}}))
		var spec *compute.ShardingSpec
		if row.sharded {
			spec = &compute.ShardingSpec{Mesh: "mesh", Axes: [][]string{{"data"}}}
		}
		do := must1(t)
		x := do(b.Parameter("x", shapes.Make(row.dtype, 6, 3), spec))
		sum := do(b.ReduceSum(do(b.Neg(x)), 0))
		shape, err := b.OpShape(sum)
		require.NoError(t, err)
		require.Equal(t, []int{3}, shape.Dimensions, row.name)
		_, err = b.Finish([]compute.Value{sum})
		require.NoError(t, err)
		require.Equal(t, row.apart, strings.Contains(text, `call_target_name = "Sharding"`), "%s: %s", row.name, text)
		require.Equal(t, row.apart, strings.Contains(text, "tensor<2x3x3x"), "%s: two parts of three rows: %s", row.name, text)
	}
}
