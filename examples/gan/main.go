// Command gan trains a generator and a discriminator in one state alternately, each with its own step, variables and
// optimizer (Goodfellow et al. 2014). The data are numbers around 4.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func network(scope *model.Scope, x *graph.Node) *graph.Node {
	h := nn.Relu(nn.Dense{Units: 16}.Apply(scope.In("hidden"), x))
	return nn.Dense{Units: 1}.Apply(scope.In("out"), h)
}

func generated(b *managed.Builder) *graph.Node {
	noise := b.Scope().RandomNormal(b.Graph(), b.Field("x").Shape())
	return network(b.Scope().In("generator"), noise)
}

// verdict is the discriminator's mean loss for real x (sign -1) or others (1).
func verdict(b *managed.Builder, x *graph.Node, sign float64) *graph.Node {
	logits := network(b.Scope().At("discriminator"), x)
	return graph.ReduceAllMean(graph.Softplus(graph.MulScalar(logits, sign)))
}

func generator(b *managed.Builder) { b.Loss("generator_loss", verdict(b, generated(b), -1)) }

func discriminator(b *managed.Builder) {
	fake := graph.StopGradient(generated(b))
	b.Loss("discriminator_loss", graph.Add(verdict(b, b.Field("x"), -1), verdict(b, fake, 1)))
	b.Metric("mean", graph.ReduceAllMean(fake))
}

func trains(scope string, build managed.Build) *managed.Stepper {
	own := func(name string) bool { return strings.HasPrefix(name, "/"+scope+"/") }
	return managed.TrainStep(build, managed.TrainOnly(own), managed.WithStepOptimizer(scope, optim.New(2e-3, optim.Adam{Beta1: 0.5})))
}

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	numbers := make([]float32, 4096)
	for i := range numbers {
		numbers[i] = 4 + 0.5*float32(rand.New(rand.NewPCG(1, uint64(i))).NormFloat64())
	}
	set := must.M1(data.New(data.X(numbers, len(numbers), 1)))
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime)))
	turns := loop.New(loop.On(loop.EachStep, trains("discriminator", discriminator)), loop.On(loop.EachStep, trains("generator", generator)))
	result := must.M1(turns.Run(ctx, state, set.Batches(64, data.Shuffle(0)), loop.Until(loop.Steps(2000))))
	means := must.M1(result.History.Collect("mean"))[0]
	fmt.Printf("mean of the data: 4, of the generator: %.2f at first, %.2f at last\n", means[0], means[len(means)-1])
}
