// Command eager prints a value within a training step and finds the line that makes the first NaN.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func step(b *managed.Builder) {
	sums := graph.ReduceAndKeep(b.Field("x"), graph.ReduceSum, 1)
	if v, err := xla.Value(sums); err == nil { // no value in a graph that is only compiled
		fmt.Println("sums:", v.Value())
	}
	shares := graph.Div(b.Field("x"), sums)
	b.Loss("loss", losses.SquaredError(b.Field("y"), nn.Dense{Units: 1}.Apply(b.Scope(), shares)))
}

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	set := must.M1(data.New(data.X([]float32{1, 2, 0, 0}, 2, 2), data.Y([]float32{1, 0}, 2, 1)))
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	eager := strategies.Eager(runtime, strategies.CheckFinite) // in place of strategies.Jit
	state := must.M1(managed.New(eager, managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))
	_, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, state, set.Batches(2))
	fmt.Println(err)
}
