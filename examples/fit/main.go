// Command fit trains a convolutional network on the digits by flaxlike's Fit, and says how good it has become: go run ./examples/fit
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
)

func main() {
	ctx, seed := context.Background(), flag.Int64("seed", 0, "of the initial parameters and of the order of the data")
	flag.Parse()
	training, test, err := data.Digits()
	check(err)
	relu := flaxlike.Activation("relu")
	model, err := flaxlike.New(ctx, flaxlike.Sequential(
		flaxlike.Conv(16, 3), relu, flaxlike.MeanPool(2), flaxlike.Conv(32, 3), relu, flaxlike.MeanPool(2),
		flaxlike.Flatten(), flaxlike.Dense(64), relu, flaxlike.Dense(10)),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(*seed))
	check(err)
	_, err = model.Fit(ctx, training, flaxlike.Fit{Epochs: 10, Validation: test})
	check(err)
	found, err := model.Evaluate(ctx, test)
	check(err)
	fmt.Printf("test accuracy: %.3f\n", found["accuracy"])
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
