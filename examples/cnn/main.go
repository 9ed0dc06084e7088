// Command cnn is the CNN of Jaxloop's colab with its inner loops, evaluations and actions, on the digits.
//
//	go run ./examples/cnn               prints the parameters, a line for each inner loop, the test accuracy
//	go run ./examples/cnn -dir run      saves a checkpoint behind each inner loop; run again with more -steps, it goes on
//
// While it runs there is a progress bar on stderr. Ctrl-C ends it between two steps.
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
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/train/outer"
	"github.com/lazo-ml/lazo/xla"
)

const inner = loop.Steps(100) // the length of an inner loop

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 1000, "training steps in all")
	dir := flag.String("dir", "", "folder of checkpoints, to go on from and to save into; without it nothing is saved")
	flag.Parse()
	if *steps < 1 {
		must.M(fmt.Errorf("-steps must be at least 1, got %d", *steps))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()

	// Datasets. The training one goes on where an earlier run was.
	training, test := must.M2(data.Digits())
	batches := func(_ context.Context, from loop.Elapsed) (loop.Data[data.Batch], error) {
		return loop.Data[data.Batch](training.Batches(32, data.Shuffle(0)).From(from.Steps)), nil
	}
	tests := test.Batches(120)

	// The state, and what it is made of.
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(0.01, optim.Momentum(0.9)))))
	trainStep := managed.TrainStep(step)
	sample := must.M1(data.Peek(training.Batches(32).All()))
	must.M(trainStep.Prepare(ctx, state, sample))
	fmt.Print(state.Summary())

	lines := callbacks.NewLines(os.Stdout) // what the summaries say: above the progress bar, not in the middle of it

	// The outer loop: inner loops of training, with an evaluation and the actions behind each.
	testing := train.Test[*managed.State, data.Batch]{Name: "test", Step: managed.TestStep(step), Data: tests}
	fit := outer.Loop[*managed.State, data.Batch]{
		Train:      trainStep,
		Data:       batches,
		TotalSteps: loop.Steps(*steps),
		LoopSteps:  inner,
		Reset:      managed.Reset, // of what an inner loop, or a test, has tracked
		Evals:      []outer.Eval[*managed.State, data.Batch]{{Test: testing}},
		End:        []outer.Action[*managed.State]{{Name: "summary", Do: summary(lines)}},
	}
	options := []loop.Option{callbacks.ProgressBar(os.Stderr, callbacks.BarBelow(lines))}
	if *dir != "" {
		options = append(options, checkpoint.Resume(*dir, checkpoint.Every(inner)))
	}
	result := must.M1(fit.Run(ctx, state, options...))
	if result.Last.Steps == 0 {
		fmt.Printf("-dir %s has %d steps already: ask for more -steps\n", *dir, result.Elapsed.Steps)
		return
	}
	accuracy := must.M1(result.Evaluations["test"].Outputs().Float("accuracy"))
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}
