// Command lrfinder finds a learning rate (Smith 2017): it trains briefly with a rising rate and reports the loss's
// fastest fall.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const steps = 200

func step(b *managed.Builder) {
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))))
}

func lossesOf(runtime *xla.Runtime, set *data.Set, optimizer *optim.Optimizer) []float64 {
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizer)))
	result := must.M1(loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(context.Background(), state, set.Batches(32, data.Shuffle(0)), loop.Until(loop.Steps(steps))))
	return must.M1(result.History.Collect("loss"))[0]
}

func main() {
	must.M = loop.Exit
	set, _ := must.M2(data.Digits())
	runtime := must.M1(xla.Open(context.Background(), "cpu", xla.InstallIfMissing(func(line string) { log.Print(line) })))
	sweep, rates := optim.ExponentialDecay(1e-5, 1e5, steps-1), make([]float64, steps)
	for i := range rates {
		rates[i] = sweep.At(int64(i))
	}
	rate := must.M1(optim.SuggestRate(rates, lossesOf(runtime, set, optim.New(1, optim.Adam{}, optim.ScaleBySchedule(sweep)))))
	trained := lossesOf(runtime, set, optim.New(rate, optim.Adam{}))
	fmt.Printf("suggested rate: %.4f; loss with it: %.3f at first, %.3f at last\n", rate, trained[0], trained[steps-1])
}
