// Command fit trains a convolutional network on the digits with flaxlike's Fit and prints its quality: go run
// ./examples/fit
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
)

func main() {
	must.M = loop.Exit // an error is printed, and ends the program
	ctx, seed := context.Background(), flag.Int64("seed", 0, "of the initial parameters and of the order of the data")
	flag.Parse()
	training, test := must.M2(data.Digits())
	relu := nn.Activation("relu")
	model := must.M1(flaxlike.New(ctx, nn.Sequential{
		nn.Conv{Channels: 16, Window: []int{3}}, relu, nn.MeanPool{Window: 2}, nn.Conv{Channels: 32, Window: []int{3}}, relu, nn.MeanPool{Window: 2},
		nn.Flatten{}, nn.Dense{Units: 64}, relu, nn.Dense{Units: 10}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
		flaxlike.WithLearningRate(0.002), flaxlike.WithSeed(*seed),
		flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 10, Validation: test}))
	found := must.M1(model.Evaluate(ctx, test))
	fmt.Printf("test accuracy: %.3f\n", found["accuracy"])
}
