// Command loop trains a linear classifier with loop.New. examples/manual and examples/train are lower and higher
// levels.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func linear(b *managed.Builder) {
	logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}

func main() {
	must.M = loop.Exit
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	train, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))

	testing := loop.Evaluate("test", managed.TestStep(linear), test.Batches(256))
	training := loop.New(
		loop.On(loop.EachStep, managed.TrainStep(linear)),
		testing.On(loop.Every(loop.Steps(250))))
	result := must.M1(training.Run(ctx, state, train.Batches(32, data.Shuffle(0)),
		loop.Until(loop.Steps(1000)), callbacks.ProgressBar(os.Stderr)))

	accuracy := must.M1(result.History.Last("accuracy_test"))
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}
