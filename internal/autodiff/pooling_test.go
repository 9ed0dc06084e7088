package autodiff_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// TestPoolingGradient compares pools over values with many ties with a plain loop: at ties the first element of the
// window, in row-major order, gets all. (GoMLX's select_and_scatter leaves the choice to XLA.)
func TestPoolingGradient(t *testing.T) {
	backend, cases := plugintest.Uncached(t), 0
	rapid.Check(t, func(t *rapid.T) {
		var n, size, stride [2]int
		var paddings [][2]int
		for axis := range n {
			size[axis] = rapid.IntRange(1, 3).Draw(t, "size")
			n[axis] = rapid.IntRange(size[axis], 7).Draw(t, "n")
			stride[axis] = rapid.IntRange(1, 4).Draw(t, "stride")
			paddings = append(paddings, [2]int{rapid.IntRange(0, size[axis]-1).Draw(t, "low"), rapid.IntRange(0, size[axis]-1).Draw(t, "high")})
		}
		if rapid.Bool().Draw(t, "tiles") {
			stride, paddings = size, nil
		}
		kind := rapid.SampledFrom([]compute.ReduceOpType{compute.ReduceOpMax, compute.ReduceOpMin, compute.ReduceOpSum}).Draw(t, "kind")
		g := graph.NewGraph(backend, "pool")
		defer g.Finalize()
		drawn := newValues(g, rapid.Uint64().Draw(t, "values"))
		dtype := rapid.SampledFrom([]dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16, dtypes.Float16}).Draw(t, "dtype")
		x := drawn.parameter(dtype, n[:]...)
		out := graph.BackendReduceWindow(x, kind, size[:], stride[:], nil, nil, paddings)
		v := drawn.parameter(dtype, out.Shape().Dimensions...)
		g.Compile(graph.ConvertDType(autodiff.Gradient(graph.ReduceAllSum(graph.Mul(out, v)), x)[0], dtypes.Float32))

		at := func(i int) [][]float32 { return drawn.inputs[i].(*tensors.Tensor).Value().([][]float32) }
		want := make([][]float32, n[0])
		for i := range want {
			want[i] = make([]float32, n[1])
		}
		if paddings == nil {
			paddings = make([][2]int, 2)
		}
		for i, row := range at(1) {
			for j, given := range row {
				chosen, found := [2]int{}, false
				for k := range size[0] * size[1] {
					r, c := i*stride[0]-paddings[0][0]+k/size[1], j*stride[1]-paddings[1][0]+k%size[1]
					if r < 0 || c < 0 || r >= n[0] || c >= n[1] {
						continue
					}
					if kind == compute.ReduceOpSum {
						want[r][c] += given
						continue
					}
					here, best := at(0)[r][c], at(0)[chosen[0]][chosen[1]]
					if !found || kind == compute.ReduceOpMax && here > best || kind == compute.ReduceOpMin && here < best {
						chosen, found = [2]int{r, c}, true
					}
				}
				if found {
					want[chosen[0]][chosen[1]] += given
				}
			}
		}
		require.Equal(t, want, g.Run(drawn.inputs...)[0].Value())
		cases++
	})
	t.Logf("%d pools", cases)
}
