// Command cnn is the CNN of Jaxloop's colab with its inner loops, evaluations and actions, on the digits.
//
//	go run ./examples/cnn               prints the parameters, a line for each inner loop, the test accuracy
//	go run ./examples/cnn -dir run      saves a checkpoint after each inner loop, and resumes when run again
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const inner = loop.Steps(100)

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 1000, "training steps in all")
	dir := flag.String("dir", "", "folder of checkpoints, to continue from and to save into; without it nothing is saved")
	flag.Parse()
	if *steps < 1 {
		must.M(fmt.Errorf("-steps must be at least 1, got %d", *steps))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()

	// A resumed run continues the data.
	training, test := must.M2(data.Digits())
	batches := training.Batches(32, data.Shuffle(0))

	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.01, optim.Momentum{Decay: 0.9}))))
	trainStep := managed.TrainStep(step)
	sample := must.M1(data.Peek(training.Batches(32).All()))
	must.M(trainStep.Prepare(ctx, state, sample))
	fmt.Print(state.Summary())

	lines := &callbacks.Lines{Out: os.Stdout} // above the progress bar

	// Inner loops, each followed by a test and a summary, also at the end.
	border := loop.Every(inner).Or(loop.At(loop.Steps(*steps)))
	fit := loop.New(
		loop.On(loop.EachStep, trainStep),
		loop.Evaluate("test", managed.TestStep(step), test.Batches(120)).On(border),
		loop.On(border, loop.StepFunc(func(ctx context.Context, state *managed.State, _ data.Batch) (*managed.State, loop.Logs, error) {
			state, err := managed.Reset(ctx, state)
			return state, loop.Logs{}, err
		})),
	)
	options := []loop.Option{loop.Until(loop.Steps(*steps)), loop.Watch(border, summary(lines)),
		callbacks.ProgressBar(os.Stderr, callbacks.Bar{Below: []*callbacks.Lines{lines}})}
	if *dir != "" {
		options = append(options, checkpoint.Resume(*dir, checkpoint.Every(inner)))
	}
	result := must.M1(fit.Run(ctx, state, batches, options...))
	fmt.Printf("test accuracy: %.3f\n", must.M1(result.History.Last("accuracy_test")))
}
