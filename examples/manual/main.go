// Command manual trains a linear classifier in a plain for: the loop's counting, schedules, logs, history and bar, without
// the loop. The same program stands in examples/loop and examples/train, each one level higher.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func linear(b *managed.Builder) {
	logits := layers.Dense(b.Vars(), graph.Reshape(b.Node("x"), -1, 64), true, 10)
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
	trainStep, testStep := managed.TrainStep(linear), managed.TestStep(linear)

	history, bar := &loop.History{}, loop.NewBar(os.Stderr)
	report := loop.Report{}
	for pass, err := range loop.Over(train.Batches(32, data.Shuffle(0), data.Forever()), loop.Until(loop.Steps(1000))) {
		check(err)
		var logs loop.Logs
		state, logs, err = trainStep.Step(ctx, state, pass.Batch)
		check(err)
		if pass.Due(loop.Every(loop.Steps(250))) {
			for batch, err := range test.Batches(test.Len()) {
				check(err)
				_, tested, err := testStep.Step(ctx, state, batch)
				check(err)
				logs.Merge(tested.Suffix("test"))
			}
		}
		history.Commit(pass.Elapsed, logs, pass.Samples())
		report = pass.Report(logs, history)
		check(bar.Watch(ctx, report))
	}
	check(bar.End(ctx, loop.Ending{Report: report}))

	accuracy, err := history.Last("accuracy_test")
	check(err)
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
