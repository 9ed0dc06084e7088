package hlo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// Integers, which XLA does not convolve, and groups have the sums of a loop.
func TestConvolution_isTheSum(t *testing.T) {
	const batch, size, in, out, window = 2, 7, 4, 6, 3
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = r.Int32N(19) - 9
		}
		return list
	}
	for _, groups := range []int{1, 2} {
		x, kernel := draw(batch*size*in), draw(window*in/groups*out)
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Int32, dtypes.Int8} {
			const stride = 2
			places := (size-window)/stride + 1
			got := graph.MustExecOnce(open(t), func(x, kernel *graph.Node) *graph.Node {
				x = graph.ConvertDType(graph.Reshape(x, batch, size, in), dtype)
				kernel = graph.ConvertDType(graph.Reshape(kernel, window, in/groups, out), dtype)
				y := graph.Convolve(x, kernel).Strides(stride).NoPadding().ChannelGroupCount(groups).Done()
				return graph.Reshape(graph.ConvertDType(y, dtypes.Int32), -1)
			}, x, kernel).Value().([]int32)
			require.Len(t, got, batch*places*out)
			for b := range batch {
				for p := range places {
					for o := range out {
						sum := int32(0)
						group := o / (out / groups)
						for k := range window {
							for c := range in / groups {
								sum += x[(b*size+p*stride+k)*in+group*in/groups+c] * kernel[(k*(in/groups)+c)*out+o]
							}
						}
						if dtype == dtypes.Int8 {
							sum = int32(int8(sum)) // wraps around
						}
						require.Equal(t, sum, got[(b*places+p)*out+o], "%s, %d groups: %d, %d, %d", dtype, groups, b, p, o)
					}
				}
			}
		}
	}
}
