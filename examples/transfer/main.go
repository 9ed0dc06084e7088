// Command transfer trains a network on the digits 0 to 4, and then has what it learnt tell 5 to 9 apart, in few steps.
// What it shows:
//
//   - a state that begins with values of another one, all but the last layer, which is drawn anew: WithValues, DrawMissing;
//   - parameters that stay as they are, bit for bit, because the optimizer may not touch them: optim.Frozen.
//
// To run it:
//
//	go run ./examples/transfer
//
// It prints the accuracy on test digits of each task, and hashes of the body's and the head's parameters before and
// after the second training: the body's are the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// step: the body makes features of a picture, the head tells five digits apart by them.
func step(b *managed.Builder) {
	x, body := graph.Reshape(b.Node("x"), -1, 64), b.Scope().In("body")
	x = activation.Relu(layers.Dense(body.In("0"), x, true, 128))
	x = activation.Relu(layers.Dense(body.In("1"), x, true, 64))
	logits := layers.Dense(b.Scope().In("head"), x, true, 5)
	b.Loss("loss", managed.CrossEntropy(b.Node("y"), logits))
	b.Metric("accuracy", managed.Accuracy(b.Node("y"), logits))
}

var trainStep, testStep = managed.TrainStep(step), managed.TestStep(step)

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 100, "training steps of the new head")
	seed := flag.Int64("seed", 0, "of the new head")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background()) // Ctrl-C ends the run between two steps
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	training, test := must.M2(data.Digits())
	on := strategies.Jit(runtime)

	first := must.M1(managed.New(on, managed.WithOptimizer(optim.New(1e-3, optim.Adam{}))))
	defer first.Close()
	accuracy := learn(ctx, first, digits(training, 0), digits(test, 0), 500)
	fmt.Printf("digits 0 to 4: test accuracy %.3f\n", accuracy)

	frozen := optim.New(1e-2, optim.Frozen(optim.Under("/body")), optim.Adam{})
	second := must.M1(managed.New(on, managed.WithOptimizer(frozen), managed.WithSeed(*seed),
		managed.WithValues(parameters(first, "/body/")),
		managed.DrawMissing(func(name string) bool { return strings.HasPrefix(name, "/head/") })))
	defer second.Close()
	batch := must.M1(data.Peek(digits(training, 5).Batches(32)))
	must.M(trainStep.Prepare(ctx, second, batch)) // the first step would make the values too; here they are looked at before it
	head := hash(second, "/head/")
	accuracy = learn(ctx, second, digits(training, 5), digits(test, 5), *steps)
	fmt.Printf("digits 5 to 9: test accuracy %.3f\n", accuracy)
	fmt.Printf("body: %s, then %s\nhead: %s, then %s\n", hash(first, "/body/"), hash(second, "/body/"), head, hash(second, "/head/"))
}

// learn trains, and gives the accuracy on the test digits.
func learn(ctx context.Context, state *managed.State, training, test *data.Set, steps int64) float64 {
	must.M1(loop.New(loop.On(loop.EachStep, trainStep)).Run(ctx, state,
		training.Batches(32, data.Shuffle(0), data.Forever()), loop.Until(loop.Steps(steps)), callbacks.ProgressBar(os.Stderr)))
	result := must.M1(loop.New(loop.On(loop.EachStep, testStep)).Run(ctx, state, test.Batches(test.Len())))
	accuracy := must.M1(result.History.Last("accuracy"))
	return accuracy
}
