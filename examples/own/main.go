// Command own trains a custom state: softmax regression in plain Go (model.go), without GoMLX and XLA, on the digits.
//
//	go run ./examples/own               trains until the test loss gets no better, and tests the best state
//	go run ./examples/own -dir run      also saves checkpoints, and resumes when run again
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 20000, "the most training steps")
	patience := flag.Int("patience", 10, "how many tests in a row may be no better than the best before it stops")
	dir := flag.String("dir", "", "folder of checkpoints, to continue from and to save into; without it nothing is saved")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	training, test := must.M2(data.Digits())

	testing := loop.Evaluate("test", step(0), test.Batches(256))
	learning := loop.New(loop.On(loop.EachStep, step(0.5)), testing.On(loop.Every(loop.Steps(100))))
	options := []loop.Option{
		loop.Until(loop.Steps(*steps)), callbacks.ProgressBar(os.Stderr),
		callbacks.StopEarly("loss_test", callbacks.Evaluations(*patience)),
	}
	if *dir != "" {
		options = append(options, checkpoint.Resume(*dir, checkpoint.Every(loop.Steps(500)), checkpoint.KeepBest("loss_test")))
	} else {
		options = append(options, callbacks.KeepBest("loss_test"))
	}
	var state model
	batches := training.Batches(32, data.Shuffle(0))
	result := must.M1(learning.Run(ctx, state, batches, options...))

	best, at := must.M2(result.History.Best("loss_test", loop.Lowest))
	_, logs := must.M2(testing.Run(ctx, result.State))
	accuracy := must.M1(logs.Float("accuracy_test"))
	fmt.Printf("%v after %d steps, best test loss %.3f at step %d\n", result.Reason, result.Elapsed.Steps, best, at.Steps)
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}
