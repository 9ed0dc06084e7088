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

func step(b *managed.Builder) { // runs once: it builds the graph that XLA compiles
	x := graph.Reshape(b.Field("x"), -1, 64)
	x = nn.Relu(nn.Dense{Units: 64}.Apply(b.Scope().In("hidden"), x))
	logits := nn.Dense{Units: 10}.Apply(b.Scope().In("logits"), x)
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}

func main() {
	must.M = loop.Exit // an error is printed, and ends the program
	ctx := context.Background()
	train, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	must.M1(training.Run(ctx, state, train.Batches(32, data.Shuffle(0)),
		loop.Until(loop.Steps(1000)), callbacks.ProgressBar(os.Stderr)))
	_, logs := must.M2(loop.Evaluate("test", managed.TestStep(step), test.Batches(256)).Run(ctx, state))
	fmt.Printf("test accuracy: %.3f\n", must.M1(logs.Float("accuracy_test")))
}
