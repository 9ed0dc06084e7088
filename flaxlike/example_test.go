package flaxlike_test

import (
	"context"
	"fmt"
	"io"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// A network of GoMLX's functions and Fit with callbacks.
func ExampleModel_Fit() {
	gated := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return graph.Mul(layers.Dense(scope.In("value"), x, true, 32), graph.Sigmoid(layers.Dense(scope.In("gate"), x, true, 32)))
	}
	training, test := must.M2(data.Digits())
	model := must.M1(flaxlike.New(context.Background(), nn.Sequential{nn.Flatten{}, nn.Func(gated), nn.Dense{Units: 10}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.01)))
	history := must.M1(model.Fit(context.Background(), training, flaxlike.Fit{Epochs: 50, ValidationSplit: 0.1, Output: io.Discard,
		Callbacks: []loop.Option{callbacks.StopEarly("val_loss", callbacks.Evaluations(3)), callbacks.KeepBest("val_loss")}}))
	found := must.M1(model.Evaluate(context.Background(), test))
	fmt.Println("stopped early:", history.Len() < 50)
	fmt.Println("test accuracy above 0.93:", found["accuracy"] > 0.93)
	must.M(model.Close())
	// Output:
	// stopped early: true
	// test accuracy above 0.93: true
}

// Two inputs and two outputs, each with a loss of its own.
func ExampleFunctional() {
	network := func(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
		both := graph.Concatenate([]*graph.Node{input("left"), input("right")}, -1)
		sum, larger := nn.Dense{Units: 1}.Apply(scope.In("sum"), both), nn.Dense{Units: 1}.Apply(scope.In("larger"), both)
		return map[string]*graph.Node{"sum": sum, "larger": larger}
	}
	model := must.M1(flaxlike.New(context.Background(), flaxlike.Functional(network), flaxlike.WithLoss(
		flaxlike.Loss{Name: "mse", Output: "sum"},
		flaxlike.Loss{Name: "binary_crossentropy", Output: "larger", Weight: 0.5})))
	set := must.M1(data.New(data.Named("left", []float32{1, 2, 3, 4}, 4, 1), data.Named("right", []float32{4, 3, 2, 1}, 4, 1),
		data.Named("sum", []float32{5, 5, 5, 5}, 4), data.Named("larger", []float32{0, 0, 1, 1}, 4)))
	must.M1(model.Fit(context.Background(), set, flaxlike.Fit{BatchSize: 4, Output: io.Discard}))
	for _, l := range model.Summary().Layers {
		fmt.Println(l.Name, l.Kind, l.Output)
	}
	must.M(model.Close())
	// Output:
	// sum Dense (Float32)[4, 1]
	// larger Dense (Float32)[4, 1]
	// larger output (Float32)[4, 1]
	// sum output (Float32)[4, 1]
}
