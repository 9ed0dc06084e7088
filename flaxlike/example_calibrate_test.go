package flaxlike_test

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/nn"
)

// overlapping is n examples of two classes that lie over each other.
func overlapping(n int) *data.Set {
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32((i*7)%n)/float32(n)*4 - 2
		if math.Sin(float64(i)*1.7)+float64(x[i]) > 0 {
			y[i] = 1
		}
	}
	return must.M1(data.New(data.X(x, n, 1), data.Y(y, n, 1)))
}

// Probabilities that are right as often as they say, and then a threshold above which nine of ten are right.
func ExampleModel_Calibrate() {
	ctx, set := context.Background(), overlapping(400)
	training, validation := must.M2(set.Split(0.5, 1))
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithLearningRate(0.1)))
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 2, Output: io.Discard}))
	found := must.M1(model.Calibrate(ctx, validation))
	fmt.Println("too careful:", found["preds"][0].Scale > 1)
	chosen := must.M1(model.ChooseThresholds(ctx, validation, decision.Aim{Precision: 0.9}))
	fmt.Println("precision:", chosen["preds"][0].Precision >= 0.9)
	must.M(model.Close())
	// Output:
	// too careful: true
	// precision: true
}

func ExampleModel_ChooseThresholds() {
	ctx, set := context.Background(), overlapping(200)
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithLearningRate(0.1)))
	must.M1(model.Fit(ctx, set, flaxlike.Fit{Epochs: 5, Output: io.Discard}))
	chosen := must.M1(model.ChooseThresholds(ctx, set, decision.Aim{Recall: 0.95}))
	fmt.Println("recall:", chosen["preds"][0].Recall >= 0.95)
	fmt.Println("in force:", model.Describe().Thresholds["preds"][0] == chosen["preds"][0].Value)
	must.M(model.Close())
	// Output:
	// recall: true
	// in force: true
}
