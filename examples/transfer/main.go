// Command transfer trains a network on the digits 0 to 4 and reuses its features for 5 to 9: go run ./examples/transfer
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

func main() {
	must.M = loop.Exit
	steps := flag.Int("steps", 100, "training steps of the new head")
	seed := flag.Int64("seed", 0, "of the new head")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	training, test := must.M2(data.Digits())
	relu := nn.Activation("relu")
	network := nn.Sequential{nn.Flatten{}, // the body and the head for five digits
		nn.Named{Name: "body", Layer: nn.Sequential{nn.Dense{Units: 128}, relu, nn.Dense{Units: 64}, relu}},
		nn.Named{Name: "head", Layer: nn.Dense{Units: 5}}}
	model := func(options ...flaxlike.Option) *flaxlike.Model {
		return must.M1(flaxlike.New(ctx, network, append(options, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
			flaxlike.InstallIfMissing(func(line string) { log.Print(line) }))...))
	}

	first := model()
	defer first.Close()
	must.M1(first.Fit(ctx, digits(training, 0), flaxlike.Fit{StepsPerEpoch: 500}))
	fmt.Printf("digits 0 to 4: test accuracy %.3f\n", must.M1(first.Evaluate(ctx, digits(test, 0)))["accuracy"])

	second := model(flaxlike.WithSeed(*seed), flaxlike.WithOptimizer(optim.New(3e-2, optim.Frozen(optim.Under("/model/1/body")), optim.Adam{})))
	defer second.Close()
	must.M(second.Init(ctx, must.M1(data.Peek(digits(training, 5).Batches(32).All()))))
	must.M1(second.CopyFrom(ctx, first, optim.Under("/model/1/body")))
	head := hash(second, "/model/2/head/")
	must.M1(second.Fit(ctx, digits(training, 5), flaxlike.Fit{StepsPerEpoch: *steps}))
	fmt.Printf("digits 5 to 9: test accuracy %.3f\n", must.M1(second.Evaluate(ctx, digits(test, 5)))["accuracy"])
	fmt.Printf("body: %s, then %s\nhead: %s, then %s\n", hash(first, "/model/1/body/"), hash(second, "/model/1/body/"), head, hash(second, "/model/2/head/"))
}
