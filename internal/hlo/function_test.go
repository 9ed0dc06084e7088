package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// Rows of x on two devices, the product whole on both; then the same in steps.
func TestAutoSharding(t *testing.T) {
	d := twoDevices(t)
	spec := func(axes ...[]string) *compute.ShardingSpec { return &compute.ShardingSpec{Mesh: "mesh", Axes: axes} }
	var module *hlo.Module
	b := programOf(hlo.New("sharded", func(m *hlo.Module) (compute.Executable, error) {
		module = m
		return d.compile(m)
	}))
	do := must1(t)
	require.NoError(t, b.DistributedAutoSharding(compute.Mesh{Name: "mesh", AxesNames: []string{"data"}, AxesSizes: []int{2}, LogicalDeviceAssignment: []int{0, 1}}))
	x := do(b.Parameter("x", shapes.Make(dtypes.Float32, 4, 2), spec([]string{"data"})))
	w := do(b.Parameter("w", shapes.Make(dtypes.Float32, 2), nil))
	rows, err := b.NewFunction("rows") // a function with shardings
	require.NoError(t, err)
	xf := do(rows.Parameter("x", shapes.Make(dtypes.Float32, 4, 2), spec([]string{"data"})))
	wf := do(rows.Parameter("w", shapes.Make(dtypes.Float32, 2), nil))
	require.NoError(t, rows.Return([]compute.Value{do(rows.DotGeneral(xf, []int{1}, nil, wf, []int{0}, nil, compute.DotGeneralConfig{}))}, []*compute.ShardingSpec{spec([]string{"data"})}))
	called, err := b.Call(rows, x, w)
	require.NoError(t, err)
	y := called[0]
	sum := do(b.DotGeneral(y, []int{0}, nil, x, []int{0}, nil, compute.DotGeneralConfig{}))
	require.NoError(t, b.InPlace(0, 1))
	exec, err := b.Finish([]compute.Value{sum, y}, nil, spec([]string{"data"}))
	require.NoError(t, err)
	defer exec.Finalize()
	require.True(t, module.Devices.Shardy())
	require.Contains(t, module.Text(), `sdy.mesh @mesh = <["data"=2], device_ids=[0, 1]>`)
	require.Contains(t, module.Text(), `sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>`)
	part := func(flat ...float32) array { return array{shapes.Make(dtypes.Float32, 2, 2), flat} }
	weights := of([]int{2}, float32(1), 1)
	send := func(exec compute.Executable, inputs ...array) []array {
		got, err := execute(d, exec, 2, inputs...)
		require.NoError(t, err)
		return got
	}
	got := send(exec, part(1, 2, 3, 4), weights, part(5, 6, 7, 8), weights)
	require.Equal(t, []float32{3*1 + 7*3 + 11*5 + 15*7, 3*2 + 7*4 + 11*6 + 15*8}, got[0].flat)
	require.Equal(t, got[0].flat, got[2].flat)
	require.Equal(t, []float32{3, 7}, got[1].flat)
	require.Equal(t, []float32{11, 15}, got[3].flat)

	looped, err := module.Steps(2, 0)
	require.NoError(t, err)
	steps, err := d.compile(looped)
	require.NoError(t, err)
	defer steps.Finalize()
	two := func(flat ...float32) array {
		return array{shapes.Make(dtypes.Float32, 2, 2, 2), append(append([]float32{}, flat...), 1, 0, 0, 1)}
	}
	n := of(nil, int32(2))
	blocks := send(steps, two(1, 2, 3, 4), weights, n, two(5, 6, 7, 8), weights, n)
	first := got[0].flat.([]float32)
	// The second step's rows are the two unit vectors on each device: it doubles the weights.
	require.Equal(t, []float32{2 * first[0], 2 * first[1]}, blocks[0].flat)
	require.Equal(t, blocks[0].flat, blocks[2].flat)
	require.Equal(t, []float32{3, 7, first[0], first[1]}, blocks[1].flat)
	require.Equal(t, []float32{11, 15, first[0], first[1]}, blocks[3].flat)
}
