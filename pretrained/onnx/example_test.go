package onnx_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained/onnx"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A file's network predicts.
func Example() {
	ctx := context.Background()
	network, err := onnx.Open(ctx, "testdata/mlp.onnx", onnx.Options{})
	check(err)
	fmt.Println(network.Inputs)
	model, err := flaxlike.New(ctx, network)
	check(err)
	defer model.Close()
	set, err := data.New(data.X([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4))
	check(err)
	predictions, err := model.Predict(ctx, set)
	check(err)
	logits, err := predictions.Output("logits")
	check(err)
	fmt.Println(logits.Dims)
	// Output:
	// [{x Float32 [-1 4]}]
	// [2 3]
}
