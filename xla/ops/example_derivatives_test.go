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

// The Hessian of x³ + y³ times a vector: 6x and 6y times its elements.
func ExampleJVP() {
	runtime := must.M1(xla.Open(context.Background(), xla.CPU, must.M1(plugintest.Kept())))
	defer func() { must.M(runtime.Close()) }()
	program := graph.MustNewExec(runtime, func(x, v *graph.Node) *graph.Node {
		gradient := ops.Gradient(graph.ReduceAllSum(graph.PowScalar(x, 3)), x)
		return ops.JVP(gradient, []*graph.Node{x}, []*graph.Node{v})[0]
	})
	defer program.Finalize()
	fmt.Println(program.MustCall([]float32{1, 2}, []float32{1, 0.5})[0].Value())
	// Output: [6 6]
}
