package docs_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla/ops"
)

// The gradients are those of the formulas.
func TestFromJAX(t *testing.T) {
	ctx, set := t.Context(), line(64)

	step := managed.TrainStep(func(b *managed.Builder) {
		y := nn.Dense{Units: 1}.Apply(b.Scope().In("dense"), b.Field("x"))
		b.Loss("loss", losses.SquaredError(b.Field("y"), y))
	})
	state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.05, optim.Adam{}))))
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, set.Batches(32), loop.Until(loop.Steps(300)))

	require.NoError(t, err)
	require.Less(t, must.M1(result.History.Last("loss")), 0.05)

	g := graph.NewGraph(cpu(), "jax")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 3))

	sum := func(carry, x []*graph.Node) (next, out []*graph.Node) {
		next = []*graph.Node{graph.Add(carry[0], graph.Square(x[0]))}
		return next, next
	}
	last, sums := ops.Scan([]*graph.Node{graph.ScalarZero(g, dtypes.Float64)}, []*graph.Node{x}, sum) // 14 and [1 5 14]

	positive := graph.GreaterThan(last[0], graph.ScalarZero(g, dtypes.Float64))
	y := ops.Cond(positive, func() []*graph.Node { return []*graph.Node{graph.Log(last[0])} },
		func() []*graph.Node { return []*graph.Node{last[0]} })[0]
	byX := ops.Gradient(y, x)[0] // 2x/14

	g.Compile(last[0], sums[0], byX)
	out := g.Run([]float64{1, 2, 3})
	require.Equal(t, 14.0, out[0].Value())
	require.Equal(t, []float64{1, 5, 14}, out[1].Value())
	require.InDeltaSlice(t, []float64{2. / 14, 4. / 14, 6. / 14}, out[2].Value(), 1e-12)
}
