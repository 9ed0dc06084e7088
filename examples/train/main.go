// Command train trains a linear classifier with a predefined loop: it tests after each epoch, stops early, and returns
// the best state. examples/manual and examples/loop are lower levels.
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
	"github.com/lazo-ml/lazo/train"
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
	training, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))

	fit := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(linear),
		Epoch: loop.Steps(training.Len() / 32),
		Tests: []loop.Evaluation[*managed.State, data.Batch]{
			loop.Evaluate("test", managed.TestStep(linear), test.Batches(256)),
		},
	}
	result := must.M1(fit.Run(ctx, state, training.Batches(32, data.Shuffle(0)),
		loop.Until(loop.Steps(1000)), callbacks.ProgressBar(os.Stderr), callbacks.KeepBest("accuracy_test"),
		callbacks.StopEarly("loss_test", callbacks.Evaluations(3)), callbacks.NonFinite()))

	best, _ := must.M2(result.History.Best("accuracy_test", loop.Highest))
	fmt.Printf("test accuracy: %.3f\n", best)
}
