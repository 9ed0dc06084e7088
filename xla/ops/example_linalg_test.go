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

// The solution x of a·x = b, for a positive definite a.
func ExampleCholesky() {
	runtime := must.M1(xla.Open(context.Background(), xla.CPU, must.M1(plugintest.Kept())))
	defer func() { must.M(runtime.Close()) }()
	program := graph.MustNewExec(runtime, func(a, b *graph.Node) *graph.Node {
		l := ops.Cholesky(a)
		return ops.SolveUpper(graph.Transpose(l, -2, -1), ops.SolveLower(l, b))
	})
	defer program.Finalize()
	fmt.Println(program.MustCall([][]float32{{4, 2}, {2, 10}}, [][]float32{{8}, {22}})[0].Value())
	// Output: [[1] [2]]
}
