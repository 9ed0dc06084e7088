package xla_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// Newer CPU plugins leave products and sums to YNNPACK. Fused with neighbouring operations, it has computed wrong
// numbers or crashed. Each program here is such a case, compared with Go's computation.

// TestProgram_sumOfSquaredProducts: for each of many rows, the sum of squares of a small product. From 16,385 rows of
// float64 and 32,769 of float32 on, the last rows had other rows' values (jaxlib 0.10.2).
func TestProgram_sumOfSquaredProducts(t *testing.T) {
	r := plugintest.CPU(t)
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		for _, rows := range []int{100, 16_384, 16_385, 32_769, 70_001} {
			t.Run(fmt.Sprintf("%v %d", dtype, rows), func(t *testing.T) {
				e, err := graph.NewExec(r, func(x, matrix *graph.Node) []*graph.Node {
					g := x.Graph()
					sum := func(m *graph.Node) *graph.Node {
						return graph.ReduceSum(graph.Square(graph.Einsum("ij,nj->ni", m, x)), 1)
					}
					eye := graph.ConvertDType(graph.Const(g, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}), dtype)
					return []*graph.Node{graph.ConvertDType(sum(matrix), dtypes.Float64), graph.ConvertDType(sum(eye), dtypes.Float64)}
				})
				require.NoError(t, err)
				defer e.Finalize()
				input := func(values []float64, dims ...int) *tensors.Tensor {
					if dtype == dtypes.Float64 {
						return tensors.FromFlatDataAndDimensions(values, dims...)
					}
					short := make([]float32, len(values))
					for i, v := range values {
						short[i] = float32(v)
					}
					return tensors.FromFlatDataAndDimensions(short, dims...)
				}
				x := make([]float64, rows*3)
				for i := range rows {
					x[3*i] = float64(i)
				}
				outputs, err := e.Call(input(x, rows, 3), input([]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, 3, 3))
				require.NoError(t, err)
				for _, output := range outputs {
					for i, got := range output.Value().([]float64) {
						want := float64(i) * float64(i)
						require.InDelta(t, want, got, 1e-6*want, "row %d", i)
					}
				}
			})
		}
	}
}

// TestProgram_productWithARepeatedNumber: row sums of the elementwise E·C·E, where C is constant, as in the gradient of
// a sum. The error was larger than the value (jaxlib 0.11.2).
func TestProgram_productWithARepeatedNumber(t *testing.T) {
	r := plugintest.CPU(t)
	for _, dims := range [][]int{{5, 60, 60}, {60, 60}, {1, 60, 60}, {3, 7, 16, 16}, {64, 8, 8}, {2, 130, 130}} {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			t.Run(fmt.Sprint(dtype, dims), func(t *testing.T) {
				rank := len(dims)
				n := dims[rank-1]
				e, err := graph.NewExec(r, func(x *graph.Node) []*graph.Node {
					x = graph.ConvertDType(x, dtype)
					var batch [][2]int
					for i := range rank - 2 {
						batch = append(batch, [2]int{i, i})
					}
					out := func(c *graph.Node) *graph.Node {
						product := graph.EinsumAxes(x, c, [][2]int{{rank - 1, rank - 2}}, batch)
						return graph.ConvertDType(graph.ReduceSum(graph.Mul(product, x), rank-1), dtypes.Float64)
					}
					full := graph.BroadcastToDims(graph.Scalar(x.Graph(), dtype, 0.375), dims...)
					return []*graph.Node{out(full), out(graph.Mul(full, graph.Scalar(x.Graph(), dtype, 0.0)))}
				})
				require.NoError(t, err)
				defer e.Finalize()
				random := rand.New(rand.NewPCG(1, 2))
				size := shapes.Make(dtypes.Float64, dims...).Size()
				x := make([]float64, size)
				for i := range x {
					x[i] = float64(random.IntN(17) - 8)
				}
				outputs, err := e.Call(tensors.FromFlatDataAndDimensions(x, dims...))
				require.NoError(t, err)
				flat := make([][]float64, 2)
				for i, output := range outputs {
					require.NoError(t, tensors.ConstFlatData(output, func(values []float64) { flat[i] = append(flat[i], values...) }))
				}
				for row := range size / n {
					sum := 0.0
					for _, v := range x[row*n : (row+1)*n] {
						sum += v
					}
					require.Equal(t, 0.375*sum*sum, flat[0][row], "row %d", row)
					require.Zero(t, math.Abs(flat[1][row]), "row %d", row)
				}
			})
		}
	}
}

// TestProgram_sumOfProductsOfManyAxes: arrays of seven and eight axes, multiplied elementwise and summed over one. The
// process crashed (jaxlib 0.10.2 to 0.11.0).
func TestProgram_sumOfProductsOfManyAxes(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		dims []int
		axis int
	}{
		{[]int{3, 1, 2, 2, 8, 8, 8}, 3}, {[]int{1, 3, 2, 2, 8, 8, 8}, 3}, {[]int{10, 4, 6, 3, 3, 3, 3, 3}, 2},
		{[]int{2, 1, 3, 1, 2, 1, 4, 5}, 6}, {[]int{2, 2, 2, 2, 2, 2, 2, 2, 3}, 1},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			e, err := graph.NewExec(r, func(x, y *graph.Node) []*graph.Node {
				sum := graph.ReduceSum(graph.Mul(x, y), row.axis)
				return []*graph.Node{graph.ReduceSum(graph.Mul(x, y), row.axis), graph.Log(graph.MaxScalar(sum, 1e-16))}
			})
			require.NoError(t, err)
			defer e.Finalize()
			shape := shapes.Make(dtypes.Float32, row.dims...)
			x, y := make([]float32, shape.Size()), make([]float32, shape.Size())
			for i := range x {
				x[i], y[i] = float32(i%7), float32(i%5)
			}
			outputs, err := e.Call(tensors.FromFlatDataAndDimensions(x, row.dims...), tensors.FromFlatDataAndDimensions(y, row.dims...))
			require.NoError(t, err)
			behind := 1
			for _, n := range row.dims[row.axis+1:] {
				behind *= n
			}
			n := row.dims[row.axis]
			var flat [2][]float32
			for i, output := range outputs {
				require.NoError(t, tensors.ConstFlatData(output, func(values []float32) { flat[i] = append(flat[i], values...) }))
			}
			for i := range flat[0] {
				want := float32(0)
				for j := range n {
					at := (i/behind*n+j)*behind + i%behind
					want += x[at] * y[at]
				}
				require.Equal(t, want, flat[0][i], "element %d", i)
				require.InDelta(t, math.Log(math.Max(float64(want), 1e-16)), flat[1][i], 1e-4, "element %d", i)
			}
		})
	}
}
