package ops_test

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/ops"
)

// A decaying sum: each place counts half of the next one. Its gradient is the weight of each place.
func ExampleScan() {
	runtime := must.M1(xla.Open(context.Background(), xla.CPU, must.M1(plugintest.Kept())))
	defer func() { must.M(runtime.Close()) }()
	program := graph.MustNewExec(runtime, func(xs *graph.Node) (sum, each, gradient *graph.Node) {
		zero := graph.ScalarZero(xs.Graph(), xs.DType())
		last, outs := ops.Scan([]*graph.Node{zero}, []*graph.Node{xs}, func(carry, x []*graph.Node) (next, out []*graph.Node) {
			sum := graph.Add(graph.MulScalar(carry[0], 0.5), x[0])
			return []*graph.Node{sum}, []*graph.Node{sum}
		})
		return last[0], outs[0], ops.Gradient(last[0], xs)[0]
	})
	defer program.Finalize()
	results := program.MustCall([]float32{8, 4, 2, 1})
	fmt.Println(results[0].Value(), results[1].Value(), results[2].Value())
	// Output: 4 [8 8 6 4] [0.125 0.25 0.5 1]
}
