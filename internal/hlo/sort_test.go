package hlo_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// A NaN comes after all numbers in ascending order and before them in descending order, as in jnp.sort and lax.top_k of
// JAX 0.10.2 (whose top_k puts a negative NaN last). 0/0 on x86 has a sign.
func TestSort_aNaNIsTheLargest(t *testing.T) {
	nan, inf, zero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	numbers := []float32{3, nan, 1, -inf, 2, -nan, inf, zero, 0, nan}
	for k, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float64, dtypes.BFloat16, dtypes.Float16} {
		outputs := graph.MustExecOnceN(open(t), func(x *graph.Node) []*graph.Node {
			if k == 0 { // XLA folds constants itself
				x = graph.Const(x.Graph(), numbers)
			}
			sorted := graph.ConvertDType(x, dtype)
			values, places := graph.TopK(sorted, 10, 0)
			least, leastPlaces := graph.BottomK(sorted, 10, 0)
			mask, back := graph.TopKMask(sorted, 4, 0), graph.Sort(sorted, 0, false)
			notLarger := graph.SortFunc(graph.NewClosure(x.Graph(), func(g *graph.Graph) []*graph.Node {
				a, b := graph.Parameter(g, "a", shapes.Make(dtype)), graph.Parameter(g, "b", shapes.Make(dtype))
				return []*graph.Node{graph.And(graph.LessOrEqual(a, b), graph.LogicalNot(graph.GreaterOrEqual(a, b)))}
			}), 0, true, sorted)[0]
			out := []*graph.Node{notLarger, graph.Sort(sorted, 0, true), back, values, places, least, leastPlaces, mask}
			for i, o := range out {
				if o.DType() == dtype {
					out[i] = graph.ConvertDType(o, dtypes.Float32)
				}
			}
			return out
		}, tensors.FromValue(numbers))
		rising, falling := "[-Inf -0 0 1 2 3 +Inf NaN NaN NaN]", "[NaN NaN NaN +Inf 3 2 1 0 -0 -Inf]"
		for i, want := range []string{
			rising, rising, falling, falling, "[1 5 9 6 0 4 2 8 7 3]", rising, "[3 7 8 2 4 0 6 1 5 9]", "[false true false false false true true false false true]",
		} {
			require.Equal(t, want, fmt.Sprint(outputs[i].Value()), "%s, output %d", dtype, i)
		}
	}
}
