// Command own has a state of its own in the loop: softmax regression in plain Go (model.go), without GoMLX and XLA, on the
// digits. A state can be of any type and a step any function on it; schedules, evaluations, history, early stopping, the best
// state and checkpoints are there for it all the same.
//
//	go run ./examples/own               trains until the test loss gets no better, and says how good the best state is
//	go run ./examples/own -dir run      saves checkpoints too; run it again, after Ctrl-C or with more -steps, and it goes on
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func main() {
	steps := flag.Int64("steps", 20000, "the most training steps")
	patience := flag.Int("patience", 10, "how many tests in a row may be no better than the best before it stops")
	dir := flag.String("dir", "", "folder of checkpoints, to go on from and to save into; without it nothing is saved")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	training, test, err := data.Digits()
	check(err)

	testing := loop.Evaluation[model, data.Batch]{
		Name: "test",
		Loop: loop.New(loop.On(loop.EachStep, step(0))),
		Data: loop.Fixed(test.Batches(test.Len())),
	}
	learning := loop.New(loop.On(loop.EachStep, step(0.5)), testing.On(loop.Every(loop.Steps(100))))
	options := []loop.Option{
		loop.Until(loop.Steps(*steps)), loop.ProgressBar(os.Stderr),
		loop.StopEarly("loss_test", loop.Lowest, loop.Evaluations(*patience)), loop.KeepBest("loss_test", loop.Lowest),
	}
	var state model
	var start checkpoint.Start
	if *dir != "" {
		folder, err := checkpoint.Open(*dir, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2)}})
		check(err)
		defer folder.Close()
		start, err = checkpoint.Resume(ctx, folder, &state)
		check(err)
		options = append(options, start.Option(), checkpoint.Save(folder, loop.Every(loop.Steps(500))))
	}
	batches := training.Batches(32, data.Shuffle(0), data.Forever(), data.Skip(start.Elapsed.Steps))
	result, err := learning.Run(ctx, state, batches, options...)
	check(err)

	best, err := result.History.Best("loss_test", loop.Lowest)
	check(err)
	_, logs, err := testing.Run(ctx, result.State)
	check(err)
	accuracy, err := logs.Float("accuracy_test")
	check(err)
	fmt.Printf("%v after %d steps, best test loss %.3f at step %d\n", result.Reason, result.Elapsed.Steps, best.Value, best.Elapsed.Steps)
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}

func check(err error) {
	if err != nil {
		log.Print(err)
		os.Exit(loop.ExitCode(err))
	}
}
