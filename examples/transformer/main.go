// Command transformer trains a small transformer (Vaswani et al. 2017) on sentences like "today ann gives to ben" to
// tell the final owner: go run ./examples/transformer
//
// A mask excludes padding from attention, loss and metrics, as in Jaxloop's TransformerStep.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

const batchSize = 32

type test = loop.Evaluation[*managed.State, data.Batch]

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 400, "training steps")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(3e-3, optim.Adam{}))))
	defer state.Close()

	training := train.Loop[*managed.State, data.Batch]{
		Step: managed.TrainStep(step), Reset: managed.Reset,
		Epoch: loop.Steps(100),
		Tests: []test{testOn(sentences(2, 512, most))},
	}
	batches := sentences(1, 8192, most).Batches(batchSize, data.Shuffle(0))
	must.M1(training.Run(ctx, state, batches, loop.Until(loop.Steps(*steps)), callbacks.ProgressBar(os.Stderr)))

	for _, length := range []int{most, longest} { // one program per length
		_, logs := must.M2(testOn(sentences(3, 1024, length)).Run(ctx, state))
		accuracy := must.M1(logs.Float("accuracy_test"))
		fmt.Printf("test accuracy of sentences padded to %d words: %.3f\n", length, accuracy)
	}
}

func testOn(set *data.Set) test {
	return loop.Evaluate("test", managed.TestStep(step), set.Batches(batchSize))
}
