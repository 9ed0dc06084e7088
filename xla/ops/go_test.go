package ops_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla/ops"
)

// GoMLX's backend in Go has no dynamic slices.
func TestGoPlugin(t *testing.T) {
	program := graph.MustNewExec(plugintest.Go(t), func(xs *graph.Node) (sum, each *graph.Node) {
		zero := graph.ScalarZero(xs.Graph(), xs.DType())
		last, outs := ops.Scan([]*graph.Node{zero}, []*graph.Node{xs}, func(carry, x []*graph.Node) (next, out []*graph.Node) {
			sum := graph.Add(graph.MulScalar(carry[0], 0.5), x[0])
			return []*graph.Node{sum}, []*graph.Node{sum}
		})
		return last[0], outs[0]
	})
	defer program.Finalize()
	results := program.MustCall([]float32{8, 4, 2, 1})
	require.Equal(t, []float32{8, 8, 6, 4}, results[1].Value())
	require.ErrorContains(t, graphs.Catch(func() {
		graph.MustNewExec(plugintest.Go(t), func(x *graph.Node) *graph.Node {
			f := func() []*graph.Node { return []*graph.Node{x} }
			return ops.Switch(x, f, f)[0]
		}).MustCall(int32(1))
	}), "ops: switch: the backend \"Go Backend\" has no DynamicSlice: use one of XLA's plugins")
}
