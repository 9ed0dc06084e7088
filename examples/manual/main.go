// Command manual trains a linear classifier in a hand-written for loop with package loop's counting, schedules, logs,
// history and bar. examples/loop and examples/train are higher levels.
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
	ctx := context.Background()
	train, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))
	trainStep, testStep := managed.TrainStep(linear), managed.TestStep(linear)

	history, bar := &loop.History{}, must.M1(callbacks.ProgressBar(os.Stderr).Start(loop.Beginning{}))
	report := loop.Report{}
	for pass, err := range loop.Over(train.Batches(32, data.Shuffle(0)), loop.Until(loop.Steps(1000))) {
		must.M(err)
		var logs loop.Logs
		state, logs = must.M2(trainStep.Step(ctx, state, pass.Batch))
		if pass.Due(loop.Every(loop.Steps(250))) {
			for batch, err := range test.Batches(test.Len()).All() {
				must.M(err)
				_, tested := must.M2(testStep.Step(ctx, state, batch))
				logs.Merge(tested.Suffix("test"))
			}
		}
		history.Commit(pass.Elapsed, logs, pass.Samples())
		report = pass.Report(logs, history)
		must.M(bar.Watch(ctx, report))
	}
	must.M(bar.End(ctx, loop.Ending{Report: report}))

	accuracy := must.M1(history.Last("accuracy_test"))
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}
