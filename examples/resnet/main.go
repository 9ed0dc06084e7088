// Command resnet trains a small ResNet with batch normalization on several devices, data parallel. The devices are
// parts of the CPU.
//
//	go run ./examples/resnet                 on 4 devices; -devices 1 has the same results up to rounding
//	go run ./examples/resnet -epochs 20      for longer, as is the learning rate's schedule
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

const batch = 64

func main() {
	must.M = loop.Exit
	devices := flag.Int("devices", 4, "how many devices: 1, 2, 4 or 8, so that they divide the batches evenly")
	epochs := flag.Int("epochs", 10, "passes over the training set")
	flag.Parse()
	if *epochs < 1 {
		must.M(fmt.Errorf("-epochs must be at least 1, got %d", *epochs))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.ClientOption("cpu_device_count", *devices), xla.InstallIfMissing(func(line string) { log.Print(line) })))
	parallel := must.M1(strategies.DataParallel(runtime, strategies.Parallel{}))

	// shifted by up to a pixel, differently in each epoch
	training, test := must.M2(data.Digits())
	epoch := training.Len() / batch
	steps := *epochs * epoch
	moved := images.Augment(0, "x", images.RandomShift(1, 1))
	batches := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		return data.Prefetch(data.Map(training.Batches(batch, data.Shuffle(0)).From(position), moved), 2)
	})

	// SGD with momentum, warmup over a tenth of the steps and decay to 0. Only kernels have weight decay.
	optimizer := optim.New(0.1,
		optim.WeightDecay{Rate: 5e-4, Match: optim.RankFrom(2)},
		optim.Momentum{Decay: 0.9},
		optim.ScaleBySchedule(optim.Linear(0, 1, steps/10).Then(steps/10, optim.Cosine(1, 0, steps-steps/10))))
	state := must.M1(managed.New(parallel, managed.WithOptimizer(optimizer)))

	fit := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(step),
		Epoch: loop.Steps(epoch),
		Tests: []loop.Evaluation[*managed.State, data.Batch]{
			loop.Evaluate("test", managed.TestStep(step), test.Batches(256)),
		},
	}
	result := must.M1(fit.Run(ctx, state, batches, loop.Until(loop.Steps(steps)), callbacks.ProgressBar(os.Stderr), callbacks.NonFinite()))
	accuracy := must.M1(result.History.Last("accuracy_test"))
	fmt.Printf("test accuracy: %.3f\n", accuracy)
}
