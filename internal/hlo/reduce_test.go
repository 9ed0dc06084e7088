package hlo_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// On XLA's CPU, and only there, adjacent axes are reduced as one axis.
func TestReduce_axesForCPU(t *testing.T) {
	rows := []struct {
		name    string
		cpu     bool
		dims    []int
		axes    []int
		joined  bool
		divided []string // mesh axis of each axis
	}{
		{"the gradient of a bias", true, []int{128, 32, 512}, []int{0, 1}, true, nil},
		{"another device", false, []int{128, 32, 512}, []int{0, 1}, false, nil},
		{"all", true, []int{64, 64}, nil, true, nil},
		{"in another order", true, []int{16, 16, 16}, []int{2, 1}, true, nil},
		{"few elements", true, []int{15, 16, 16}, []int{0, 1}, false, nil},
		{"axes with one between", true, []int{16, 16, 16}, []int{0, 2}, false, nil},
		{"one axis", true, []int{128, 32, 512}, []int{1}, false, nil},
		{"examples divided, places", true, []int{128, 32, 512}, []int{0, 1}, true, []string{"data"}},
		{"places, examples divided", true, []int{128, 32, 512}, []int{0, 1}, false, []string{"", "data"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var text string
			b := programOf(hlo.New("reduce", func(m *hlo.Module) (compute.Executable, error) {
				text = m.Text()
				return &executable{module: m}, nil
			}).ForCPU(row.cpu))
			var split *compute.ShardingSpec
			if row.divided != nil {
				require.NoError(t, b.DistributedAutoSharding(compute.Mesh{Name: "mesh", AxesNames: []string{"data"}, AxesSizes: []int{2}}))
				split = &compute.ShardingSpec{Mesh: "mesh", Axes: make([][]string, len(row.dims))}
				for i, axis := range row.divided {
					if axis != "" {
						split.Axes[i] = []string{axis}
					}
				}
			}
			x, err := b.Parameter("x", shapes.Make(dtypes.Float32, row.dims...), split)
			require.NoError(t, err)
			sum, err := b.ReduceSum(x, row.axes...)
			require.NoError(t, err)
			_, err = b.Finish([]compute.Value{sum})
			require.NoError(t, err)
			require.Equal(t, row.joined, strings.Contains(text, `"stablehlo.optimization_barrier"`), text)
		})
	}
}

// forCPU is the device with ForCPU.
type forCPU struct{ *device }

func (d forCPU) Builder(name string) compute.Builder { return hlo.New(name, d.compile).ForCPU(true) }

// Sums over several axes of larger arrays, and products that contract two axes, match Go.
func TestReduce_severalAxes(t *testing.T) {
	const a, b, c, d = 16, 24, 12, 3
	x, y := make([]int32, a*b*c), make([]int32, a*b*d)
	for i := range x {
		x[i] = int32(i*7919%101) - 50
	}
	for i := range y {
		y[i] = int32(i*104729%23) - 11
	}
	of01, of12, all, of02, product := make([]int32, c), make([]int32, a), int32(0), make([]int32, b), make([]int32, c*d)
	for i := range a {
		for j := range b {
			for k := range c {
				v := x[(i*b+j)*c+k]
				of01[k] += v
				of12[i] += v
				of02[j] += v
				all += v
				for l := range d {
					product[k*d+l] += v * y[(i*b+j)*d+l]
				}
			}
		}
	}
	on := open(t)
	outputs := graph.MustExecOnceN(forCPU{on}, func(x, y *graph.Node) []*graph.Node {
		return []*graph.Node{graph.ReduceSum(x, 0, 1), graph.ReduceSum(x, 2, 1), graph.ReduceAllSum(x), graph.ReduceSum(x, 0, 2),
			graph.Dot(x, y).General([]int{0, 1}, nil, []int{0, 1}, nil)}
	}, tensors.FromFlatDataAndDimensions(x, a, b, c), tensors.FromFlatDataAndDimensions(y, a, b, d))
	// Two operands of the product, the swapped product, and three sums.
	require.Equal(t, 6, strings.Count(on.last.Text(), `"stablehlo.optimization_barrier"`))
	for i, want := range [][]int32{of01, of12, {all}, of02, product} {
		require.Equal(t, want, tensors.MustCopyFlatData[int32](outputs[i]), i)
	}
}
