package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

func twoDevices(t *testing.T) *device {
	d := open(t)
	require.Equal(t, 2, d.NumDevices())
	return d
}

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
