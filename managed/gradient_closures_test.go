package managed_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// GoMLX silently returns the gradient 0 for a parameter that the closures of its If and While capture. A training step
// refuses a loss that depends on one, also if the parameter reaches the loss by another way.
func TestTrainStep_refusesClosuresOfGoMLX(t *testing.T) {
	branch := func(w *graph.Node) *graph.Node {
		g := w.Graph()
		return graph.If(graph.Const(g, true),
			graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{graph.Mul(w, w)} }),
			graph.NewClosure(g, func(*graph.Graph) []*graph.Node { return []*graph.Node{w} }))[0]
	}
	loop := func(w *graph.Node) *graph.Node {
		g := w.Graph()
		sum := func(g *graph.Graph) *graph.Node { return graph.Parameter(g, "sum", shapes.Make(dtypes.Float32)) }
		return graph.While(
			graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
				return []*graph.Node{graph.LessThan(sum(g), graph.Const(g, float32(3)))}
			}),
			graph.NewClosure(g, func(g *graph.Graph) []*graph.Node { return []*graph.Node{graph.Add(sum(g), w)} }),
			graph.Const(g, float32(0)))[0]
	}
	const refused = "the loss depends on an If or a While, expected operations that have a gradient"
	r := plugintest.CPU(t)
	for name, row := range map[string]struct {
		loss func(w *graph.Node) *graph.Node
		want string // of the error, "" for none
	}{
		"If beside another way":    {func(w *graph.Node) *graph.Node { return graph.Add(w, branch(w)) }, refused},
		"While beside another way": {func(w *graph.Node) *graph.Node { return graph.Mul(w, loop(w)) }, refused},
		"without its gradient":     {func(w *graph.Node) *graph.Node { return graph.Add(w, graph.StopGradient(branch(w))) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(optim.New(0.5)))
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			step := managed.TrainStep(func(b *managed.Builder) {
				b.Loss("loss", row.loss(b.Scope().VariableWithValue("w", float32(2)).NodeValue(b.Graph())))
			})
			defer func() { require.NoError(t, step.Close()) }()
			_, _, err = step.Step(t.Context(), state, data.Batch{Fields: []data.Field{data.X([]float32{1}, 1, 1)}})
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
		})
	}
}
