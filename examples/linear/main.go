// Command linear trains the linear classifier of Ciclo's getting-started page in three forms with the same results
// (shapes.go):
//
//	go run ./examples/linear                  loop.New: tasks on schedules
//	go run ./examples/linear -shape manual    a for loop over loop.Over
//	go run ./examples/linear -shape train     train.Loop: a step, the tests at the end of each epoch
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func main() {
	must.M = loop.Exit
	name, steps := flag.String("shape", "loop", "of the program: loop, manual or train"), flag.Int64("steps", 1000, "training steps, at least the 44 of an epoch")
	flag.Parse()
	shape, found := map[string]func(context.Context, problem) *loop.History{"loop": inLoop, "manual": byHand, "train": predefined}[*name]
	if !found {
		must.M(fmt.Errorf("-shape %s: must be loop, manual or train", *name))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	digits, test := must.M2(data.Digits())
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	adamw := optim.New(1e-3, optim.Adam{}, optim.WeightDecay{Rate: 1e-4})
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(adamw)))

	history := shape(ctx, problem{
		state:   state,
		batches: digits.Batches(32, data.Shuffle(0)),
		test:    test.Batches(test.Len()),
		epoch:   loop.Steps(digits.Len() / 32),
		until:   loop.Steps(*steps),
	})
	losses := must.M1(history.Collect("loss"))
	accuracy := must.M1(history.Last("accuracy_test"))
	fmt.Printf("loss: %.3f at first, %.3f at last\ntest accuracy: %.3f\n", losses[0][0], losses[0][len(losses[0])-1], accuracy)
}
