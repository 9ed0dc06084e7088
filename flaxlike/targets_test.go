package flaxlike_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// A model of scaled labels answers, and reports its metrics, in the labels' units, as scikit-learn's
// TransformedTargetRegressor of the same weights; its loss is of the scaled labels. So does the model of its file.
func TestTargets_areThoseOfScikitLearn(t *testing.T) {
	var file struct {
		X, Y, New []float64
		Cases     []struct {
			Scale                           string
			Log                             bool
			Scaled, Predictions             []float64
			Slope, Intercept, Mae, Rmse, R2 float64
		}
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("../data/tables/testdata/targets.json")), &file))
	n, ctx := len(file.X), t.Context()
	table := must.M1(data.New(data.Named("a", file.X, n), data.Named("price", file.Y, n)))
	fresh := must.M1(data.New(data.Named("a", file.New, len(file.New))))
	for _, c := range file.Cases {
		p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}, tables.Labels{Columns: []string{"price"}, Numbers: true, Log: c.Log,
			Scale: map[string]tables.Scale{"standard": tables.Standard, "minmax": tables.MinMax}[c.Scale]}))
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae", "rmse", "r2", "msle", "pearson"), flaxlike.WithPreparation(p),
			flaxlike.WithLearningRate(1e-30))
		require.NoError(t, m.Init(ctx, first(t, fresh, 2)))
		require.NoError(t, m.SetValue("/model/kernel", tensors.FromFlatDataAndDimensions([]float32{float32(c.Slope)}, 1, 1)))
		require.NoError(t, m.SetValue("/model/bias", tensors.FromFlatDataAndDimensions([]float32{float32(c.Intercept)}, 1)))
		var loss float64
		for i, x := range file.X {
			off := c.Slope*x + c.Intercept - c.Scaled[i]
			loss += off * off / float64(n)
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		require.NoError(t, m.Save(path))
		again, err := opened(t, path)
		require.NoError(t, err)
		near := 1e-5
		if c.Log {
			near = 1e-3 // a weight in float32 has 7 digits of the logarithm
		}
		for _, m := range []*flaxlike.Model{m, again} {
			got := output(t, must.M1(m.Predict(ctx, fresh)))
			require.Equal(t, []int{3, 1}, got.Dims)
			for i, want := range c.Predictions {
				require.InEpsilon(t, want, got.Flat.([]float32)[i], 1e-6)
			}
			require.Equal(t, "numbers", must.M1(must.M1(m.Predict(ctx, fresh)).Kind()))
			figures := must.M1(m.Evaluate(ctx, table))
			require.InEpsilon(t, c.Mae, figures["mae"], near)
			require.InEpsilon(t, c.Rmse, figures["rmse"], near)
			require.InEpsilon(t, c.R2, figures["r2"], near)
			require.InEpsilon(t, loss, figures["loss"], near)
		}
		history, err := m.Fit(ctx, table, quiet(flaxlike.Fit{Validation: table}))
		require.NoError(t, err)
		for _, name := range []string{"mae", "val_mae"} {
			got, err := history.Last(name)
			require.NoError(t, err)
			require.InEpsilon(t, c.Mae, got, near, name)
		}
	}
}

// Several columns of labels have their own scales. An output of another width, whose numbers have no units, is refused.
func TestTargets_ofSeveralColumns(t *testing.T) {
	ctx := t.Context()
	table := must.M1(data.New(data.Named("a", []float32{1, 2, 3, 4}, 4), data.Named("cm", []float32{100, 200, 300, 400}, 4), data.Named("kg", []float32{1, 3, 1, 3}, 4)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}, tables.Labels{Columns: []string{"cm", "kg"}, Numbers: true, Scale: tables.MinMax}))
	m := newModel(t, nn.Sequential{nn.Dense{Units: 2}, nn.Activation("sigmoid")}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae"), flaxlike.WithPreparation(p))
	require.NoError(t, m.Init(ctx, first(t, table, 2)))
	require.NoError(t, m.SetValue("/model/0/kernel", tensors.FromFlatDataAndDimensions([]float32{0, 0}, 1, 2)))
	require.InDeltaSlice(t, []float32{250, 2, 250, 2, 250, 2, 250, 2}, output(t, must.M1(m.Predict(ctx, table))).Flat, 1e-4)
	require.InDelta(t, (100+1)/2.0, must.M1(m.Evaluate(ctx, table))["mae"], 1e-4)
	wide := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	_, err := wide.Predict(ctx, table)
	require.ErrorContains(t, err, `field "y" has 2 columns of scaled labels, and the output is (Float32)[4, 3]: expected a number for each column`)
}

// A column of windows has one scale for all places.
func TestTargets_ofWindows(t *testing.T) {
	ctx := t.Context()
	table := must.M1(data.New(data.Named("a", []float32{1, 2, 3, 4}, 2, 2), data.Named("next", []float32{10, 20, 30, 40, 50, 60}, 2, 3)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}, tables.Labels{Columns: []string{"next"}, Numbers: true, Scale: tables.Standard}))
	m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 3}}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae"), flaxlike.WithPreparation(p))
	require.NoError(t, m.Init(ctx, first(t, table, 2)))
	require.NoError(t, m.SetValue("/model/1/kernel", tensors.FromFlatDataAndDimensions(make([]float32, 6), 2, 3)))
	require.InDeltaSlice(t, []float32{35, 35, 35, 35, 35, 35}, output(t, must.M1(m.Predict(ctx, table))).Flat, 1e-4)
	require.InDelta(t, 15, must.M1(m.Evaluate(ctx, table))["mae"], 1e-4)
	restored := must.M1(table.Map(p.Apply, p.Restore))
	require.InDeltaSlice(t, []float32{10, 20, 30, 40, 50, 60}, must.M1(restored.Field("y")).Flat, 1e-4)
}
