package selection_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
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

// A search for the learning rate; run a second time, it would take everything from the folder.
func ExampleSearch() {
	dir := must.M1(os.MkdirTemp("", "search"))
	defer os.RemoveAll(dir)
	search := selection.Search{
		Space: []selection.Parameter{{Name: "rate", Low: 1e-5, High: 1e-1, Log: true}},
		Grid:  3, Entry: "val_loss", Training: overlapping(200), Dir: dir,
		Make: func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
			model, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"),
				flaxlike.WithLearningRate(p.Float("rate")))
			return model, flaxlike.Fit{Epochs: 3, ValidationSplit: 0.2, Output: io.Discard}, err
		},
	}
	found := must.M1(search.Run(context.Background()))
	best, _ := found.Best()
	fmt.Printf("the best of %d trials has the rate %.3g\n", len(found.Trials), best.Parameters["rate"])
	model := must.M1(found.Open(context.Background()))
	must.M(model.Close())
	// Output: the best of 3 trials has the rate 0.1
}

func ExampleCrossValidate() {
	set := overlapping(200)
	found := must.M1(selection.CrossValidate(context.Background(), set, 4, 1, func(ctx context.Context, fold int, training *data.Set) (*flaxlike.Model, error) {
		model, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy"),
			flaxlike.WithLearningRate(0.1))
		if err == nil {
			_, err = model.Fit(ctx, training, flaxlike.Fit{Epochs: 5, Output: io.Discard})
		}
		return model, err
	}))
	fmt.Println(len(found.Figures), "folds, accuracy above 0.7:", found.Mean["accuracy"] > 0.7)
	fmt.Println("probabilities of all examples:", must.M1(found.Predictions.Probabilities()).Dims)
	// Output:
	// 4 folds, accuracy above 0.7: true
	// probabilities of all examples: [200 1]
}

func ExampleEnsemble() {
	ctx, set := context.Background(), overlapping(200)
	var models []*flaxlike.Model
	for seed := range int64(3) {
		model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"),
			flaxlike.WithLearningRate(0.1), flaxlike.WithSeed(seed)))
		must.M1(model.Fit(ctx, set, flaxlike.Fit{Epochs: 3, Output: io.Discard}))
		models = append(models, model)
	}
	ensemble := must.M1(selection.NewEnsemble(models...))
	mean := must.M1(ensemble.Predict(ctx, set))
	fmt.Println(must.M1(mean.Classes()).Dims)
	for _, model := range models {
		must.M(model.Close())
	}
	// Output: [200]
}
