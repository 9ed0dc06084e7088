// Command outputs trains one network with several inputs and outputs, a custom layer and weighted losses. From a
// digit's image and colour it predicts the digit, the ink, and whether a rule holds: go run ./examples/outputs
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// gated is a custom layer: a dense layer with a gate.
func gated(units int) nn.Layer {
	value, gate := nn.Dense{Units: units}, nn.Dense{Units: units}
	return nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		return graph.Mul(value.Apply(scope.In("value"), x), graph.Sigmoid(gate.Apply(scope.In("gate"), x)))
	})
}

// network has a trunk for three outputs; "rule" also sees the colour.
func network(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
	trunk := nn.Sequential{nn.Flatten{}, gated(64), nn.Dropout{Rate: 0.2}, gated(32)}
	h := trunk.Apply(scope.In("trunk"), input("image"))
	digit := nn.Dense{Units: 10}.Apply(scope.In("digit"), h)
	both := graph.Concatenate([]*graph.Node{graph.Softmax(digit), input("colour")}, -1)
	rule := nn.Sequential{nn.Dense{Units: 16}, nn.Activation("relu"), nn.Dense{Units: 1}}
	return map[string]*graph.Node{"digit": digit, "ink": nn.Dense{Units: 1}.Apply(scope.In("ink"), h), "rule": rule.Apply(scope.In("rule"), both)}
}

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	epochs := flag.Int("epochs", 15, "how often to go over the digits")
	seed := flag.Int64("seed", 0, "of the initial parameters and of the order of the data")
	flag.Parse()
	training, test := must.M2(digits())
	model := must.M1(flaxlike.New(ctx, flaxlike.Functional(network), flaxlike.WithSeed(*seed), flaxlike.WithLearningRate(0.003),
		flaxlike.WithLoss(
			flaxlike.Loss{Name: "sparse_categorical_crossentropy", Output: "digit"},
			flaxlike.Loss{Name: "mse", Output: "ink", Weight: 10},
			flaxlike.Loss{Name: "binary_crossentropy", Output: "rule", Weight: 0.5}),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "digit"}, flaxlike.Metric{Name: "mae", Output: "ink"}, flaxlike.Metric{Name: "accuracy", Output: "rule"}),
		flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: *epochs, Validation: test}))
	figures := must.M1(model.Evaluate(ctx, test))
	for _, name := range []string{"digit_accuracy", "ink_mae", "rule_accuracy"} {
		fmt.Printf("test %s: %.3f\n", name, figures[name])
	}
}
