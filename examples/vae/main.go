// Command vae trains a variational autoencoder (Kingma and Welling 2013) that encodes digits as two numbers: go run
// ./examples/vae -out digits.png
//
//   - A training step adds two losses by name, reconstruction and kl.
//   - Random numbers depend on the seed and the step.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const (
	pixels  = 64
	numbers = 2 // latent dimensions
)

// step encodes an image as mean and spread, draws a latent, and decodes it.
func step(b *managed.Builder) {
	x := graph.Reshape(b.Field("x"), -1, pixels)
	h := network(b.Scope().In("encoder"), x, 2*numbers)
	mean, logVariance := graph.Slice(h, graph.AxisRange(), graph.AxisRange(0, numbers)), graph.Slice(h, graph.AxisRange(), graph.AxisRange(numbers))
	noise := b.Scope().RandomNormal(b.Graph(), mean.Shape())
	z := graph.Add(mean, graph.Mul(noise, graph.Exp(graph.MulScalar(logVariance, 0.5))))
	logits := network(b.Scope().In("decoder"), z, pixels)

	// the cross-entropy of pixels from 0 to 1, and the divergence from a normal prior
	b.Loss("reconstruction", graph.ReduceSum(graph.Sub(graph.Softplus(logits), graph.Mul(x, logits)), -1))
	kl := graph.Sub(graph.Add(graph.Square(mean), graph.Exp(logVariance)), graph.OnePlus(logVariance))
	b.Loss("kl", graph.MulScalar(graph.ReduceSum(kl, -1), 0.5))
}

func network(scope *model.Scope, x *graph.Node, outputs int) *graph.Node {
	for _, name := range []string{"hidden_0", "hidden_1"} {
		x = nn.Relu(nn.Dense{Units: 128}.Apply(scope.In("%s", name), x))
	}
	return nn.Dense{Units: outputs}.Apply(scope.In("out"), x)
}

func paint(b *managed.Builder) {
	b.Output("pictures", graph.Sigmoid(network(b.Scope().In("decoder"), b.Field("z"), pixels)))
}

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 3000, "training steps")
	out := flag.String("out", "", "the PNG `file` to write a grid of pictures to")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	digits, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(1e-3, optim.Adam{}))))
	defer state.Close()

	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	must.M1(training.Run(ctx, state, digits.Batches(64, data.Shuffle(0)), loop.Until(loop.Steps(*steps)), callbacks.ProgressBar(os.Stderr)))
	_, logs := must.M2(loop.Evaluate("", managed.TestStep(step), test.Batches(256)).Run(ctx, state))
	reconstruction := must.M1(logs.Float("reconstruction"))
	kl := must.M1(logs.Float("kl"))
	fmt.Printf("reconstruction: %.2f, kl: %.2f\n", reconstruction, kl)
	if *out != "" {
		writeGrid(ctx, state, *out)
	}
}
