package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func step(b *managed.Builder) { // runs once: it builds the graph that XLA compiles
	x := graph.Reshape(b.Node("x"), -1, 64)
	x = activations.Relu(layers.Dense(b.Vars().In("hidden"), x, true, 64))
	logits := layers.Dense(b.Vars().In("logits"), x, true, 10)
	b.Loss("loss", managed.CrossEntropy(b.Node("y"), logits))
	b.Metric("accuracy", managed.Accuracy(b.Node("y"), logits))
}

func main() {
	ctx := context.Background()
	train, test, err := data.Digits()
	check(err)
	runtime, err := xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) }))
	check(err)
	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizers.Adam().Done()))
	check(err)
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	_, err = training.Run(ctx, state, train.Batches(32, data.Shuffle(0), data.Forever()),
		loop.Until(loop.Steps(1000)), loop.ProgressBar(os.Stderr))
	check(err)
	testing := loop.New(loop.On(loop.EachStep, managed.TestStep(step)))
	result, err := testing.Run(ctx, state, test.Batches(test.Len()))
	check(err)
	accuracy, err := result.History.Mean("accuracy")
	check(err)
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
