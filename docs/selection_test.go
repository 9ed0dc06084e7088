package docs_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/nn"
)

func TestSelection_search(t *testing.T) {
	ctx, dir, strategy := t.Context(), t.TempDir(), jit()
	training, _ := digits()
	search := selection.Search{
		Space: []selection.Parameter{
			{Name: "rate", Low: 1e-4, High: 1e-1, Log: true}, {Name: "units", Low: 8, High: 64, Integer: true}, {Name: "activation", Values: []any{"relu", "tanh"}}},
		Trials: 6, Seed: 1, Entry: "val_accuracy", Training: training, Dir: dir,
		Make: func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
			model, err := flaxlike.New(ctx, nn.Sequential{nn.Flatten{},
				nn.Dense{Units: p.Int("units")}, nn.Activation(p.Text("activation")), nn.Dense{Units: 10}},
				flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
				flaxlike.WithLearningRate(p.Float("rate")), flaxlike.WithStrategy(strategy))
			return model, flaxlike.Fit{Epochs: 3, ValidationSplit: 0.2, Output: io.Discard}, err
		},
	}
	found := must.M1(search.Run(ctx))
	fmt.Println(found) // the best first
	model := must.M1(found.Open(ctx, flaxlike.WithStrategy(strategy)))
	defer model.Close()
	best, ok := found.Best()
	require.True(t, ok)
	require.Greater(t, best.Value, 0.5)
}

func TestSelection_crossValidate(t *testing.T) {
	ctx, strategy := t.Context(), jit()
	set, _ := digits()
	found := must.M1(selection.CrossValidate(ctx, set, 5, 1, func(ctx context.Context, fold int, training *data.Set) (*flaxlike.Model, error) {
		model, err := flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}},
			flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.01),
			flaxlike.WithStrategy(strategy))
		if err == nil {
			_, err = model.Fit(ctx, training, flaxlike.Fit{Epochs: 2, Output: io.Discard})
		}
		return model, err
	}, data.Stratified("y")))
	fmt.Println(found) // a line for each fold, the means and the deviations
	require.Len(t, found.Figures, 5)
	require.Equal(t, []int{256, 10}, must.M1(found.Predictions.Probabilities()).Dims)
}

func TestSelection_prepareWithinFolds(t *testing.T) {
	ctx, strategy := t.Context(), jit()
	table := must.M1(tables.Read(strings.NewReader("mass,species\n"+strings.Repeat("3.5,a\n,b\n4.5,b\n3,a\n", 6)), tables.Format{Texts: true}))
	found := must.M1(selection.CrossValidate(ctx, table, 3, 1, func(ctx context.Context, _ int, training *data.Set) (*flaxlike.Model, error) {
		preparation, err := tables.Fit(training, // of what is trained on alone
			tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.Standard}, tables.Labels{Columns: []string{"species"}})
		if err != nil {
			return nil, err
		}
		model, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 2}}, flaxlike.WithLoss("sparse_categorical_crossentropy"),
			flaxlike.WithMetrics("accuracy"), flaxlike.WithPreparation(preparation), flaxlike.WithStrategy(strategy))
		if err == nil {
			_, err = model.Fit(ctx, training, flaxlike.Fit{Epochs: 2, Output: io.Discard})
		}
		return model, err
	}, data.Stratified("species")))
	require.Len(t, found.Figures, 3)
	require.Contains(t, found.Figures[0], "accuracy")
	require.Equal(t, []string{"a", "b"}, must.M1(found.Predictions.ClassNames()))
}

func TestSelection_ensemble(t *testing.T) {
	ctx, strategy := t.Context(), jit()
	training, test := digits()
	validation := must.M1(training.Slice(192, 256))
	var models []*flaxlike.Model
	for seed := range int64(2) {
		model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}}, flaxlike.WithSeed(seed),
			flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithLearningRate(0.01), flaxlike.WithStrategy(strategy)))
		defer model.Close()
		must.M1(model.Fit(ctx, must.M1(training.Slice(0, 192)), flaxlike.Fit{Epochs: 2, Output: io.Discard}))
		models = append(models, model)
	}
	ensemble := must.M1(selection.NewEnsemble(models...))
	mean := must.M1(ensemble.Predict(ctx, test)) // mean.Classes() go by the means of the models' probabilities

	calibrations := must.M1(models[0].Calibrate(ctx, validation)) // calibrations["preds"][0].Temperature()
	p := must.M1(models[0].Predict(ctx, test))                    // p.Probabilities() are the calibrated ones
	require.Equal(t, []int{64}, must.M1(mean.Classes()).Dims)
	require.Positive(t, calibrations["preds"][0].Temperature())
	require.Equal(t, []int{64, 10}, must.M1(p.Probabilities()).Dims)
}

func TestSelection_thresholds(t *testing.T) {
	ctx := t.Context()
	x, y := make([]float32, 64), make([]float32, 64)
	for i := range x {
		x[i] = float32(i)/32 - 1
		if i%5 != 0 == (i > 32) {
			y[i] = 1
		}
	}
	validation := must.M1(data.New(data.X(x, 64, 1), data.Y(y, 64, 1)))
	test := validation
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithLearningRate(0.3),
		flaxlike.WithStrategy(jit())))
	defer model.Close()
	must.M1(model.Fit(ctx, validation, flaxlike.Fit{Epochs: 5, Output: io.Discard}))
	chosen := must.M1(model.ChooseThresholds(ctx, validation, decision.Aim{Precision: 0.8}))
	classes := must.M1(must.M1(model.Predict(ctx, test)).Classes()) // by chosen["preds"][0].Value
	require.GreaterOrEqual(t, chosen["preds"][0].Precision, 0.8)
	require.Equal(t, []int{64}, classes.Dims)
}
