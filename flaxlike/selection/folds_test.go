package selection_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/nn"
)

// squares solves least squares with a constant by the normal equations.
func squares(x, y []float32) (w [3]float64) {
	var a [3][4]float64
	for i := range y {
		row := [3]float64{float64(x[2*i]), float64(x[2*i+1]), 1}
		for r := range 3 {
			for c := range 3 {
				a[r][c] += row[r] * row[c]
			}
			a[r][3] += row[r] * float64(y[i])
		}
	}
	for p := range 3 {
		for r := range 3 {
			if r != p {
				f := a[r][p] / a[p][p]
				for c := range 4 {
					a[r][c] -= f * a[p][c]
				}
			}
		}
	}
	for r := range 3 {
		w[r] = a[r][3] / a[r][r]
	}
	return w
}

// The figures, means, deviations and predictions are scikit-learn's on the same folds (testdata/folds.py), of a model
// that has the solution of least squares.
func TestCrossValidate_asThePeer(t *testing.T) {
	var peer struct {
		Parts             []int
		X, Y, Predictions []float64
		Figures           map[string][]float64
		Mean, Deviation   map[string]float64
	}
	x, y := make([]float32, 40), make([]float32, 20)
	for i := range y {
		x[2*i], x[2*i+1] = float32((7*i)%20)/10-1, float32((3*i)%11)/5-1
		y[i] = 2*x[2*i] - x[2*i+1] + float32((5*i)%7)/7
	}
	set := must.M1(data.New(data.X(x, 20, 2), data.Y(y, 20, 1)))
	parts, part := make([]int, 20), 0
	for fold, err := range set.Folds(4, 1) {
		require.NoError(t, err)
		for _, row := range fold.TestRows {
			parts[row] = part
		}
		part++
	}
	t.Logf("the parts of the rows: %s", must.M1(json.Marshal(parts)))
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/folds.json")), &peer))
	require.Equal(t, peer.Parts, parts)
	require.InDeltaSlice(t, peer.X, x, 1e-6)
	require.InDeltaSlice(t, peer.Y, y, 1e-6)
	var folds []int
	found, err := selection.CrossValidate(t.Context(), set, 4, 1, func(ctx context.Context, fold int, training *data.Set) (*flaxlike.Model, error) {
		folds = append(folds, fold)
		m, err := flaxlike.New(ctx, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mse", "mae"), flaxlike.WithStrategy(jit(t)))
		if err != nil {
			return nil, err
		}
		var fields [2][]float32
		for i, f := range training.Fields() {
			fields[i] = f.Array.Flat.([]float32)
		}
		w := squares(fields[0], fields[1])
		if err := m.Init(ctx, first(t, training, 1)); err != nil {
			return m, err
		}
		for _, name := range m.Names() {
			switch {
			case len(name) > 7 && name[len(name)-7:] == "/kernel":
				err = m.SetValue(name, tensors.FromFlatDataAndDimensions([]float32{float32(w[0]), float32(w[1])}, 2, 1))
			case len(name) > 5 && name[len(name)-5:] == "/bias":
				err = m.SetValue(name, tensors.FromFlatDataAndDimensions([]float32{float32(w[2])}, 1))
			}
			if err != nil {
				return m, err
			}
		}
		return m, nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, folds)
	for name, want := range peer.Figures {
		for i, figures := range found.Figures {
			require.InDelta(t, want[i], figures[name], 1e-5, name)
		}
		require.InDelta(t, peer.Mean[name], found.Mean[name], 1e-5, name)
		require.InDelta(t, peer.Deviation[name], found.Deviation[name], 1e-5, name)
	}
	require.Equal(t, []int{20, 1}, output(t, found.Predictions).Dims)
	require.InDeltaSlice(t, peer.Predictions, output(t, found.Predictions).Flat, 1e-5)
	_, err = found.Predictions.Probabilities()
	require.ErrorIs(t, err, flaxlike.ErrNoProbabilities, "its loss is for numbers")
	require.Contains(t, found.String(), "fold       loss ")
	require.Contains(t, found.String(), "\ndeviation  ")
}

// Probabilities are in the set's order too, with classes and groups kept apart.
func TestCrossValidate_classes(t *testing.T) {
	n := 30
	groups := make([]int32, n)
	for i := range groups {
		groups[i] = int32(i / 5)
	}
	set := sorted(t, n, data.Named("group", groups, n))
	fit := func(ctx context.Context, _ int, training *data.Set) (*flaxlike.Model, error) {
		m, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.5),
			flaxlike.WithStrategy(jit(t)), flaxlike.WithBatchSize(8))
		if err == nil {
			_, err = m.Fit(ctx, training, flaxlike.Fit{Epochs: 5, Output: io.Discard})
		}
		return m, err
	}
	for _, by := range []data.SplitOption{data.Stratified("y"), data.Grouped("group")} {
		found, err := selection.CrossValidate(t.Context(), set, 3, 7, fit, by)
		require.NoError(t, err)
		require.Equal(t, 1.0, found.Mean["accuracy"])
		require.Equal(t, 0.0, found.Deviation["accuracy"])
		p := must.M1(found.Predictions.Probabilities()).Flat.([]float32)
		for i := range n {
			require.Greater(t, p[3*i+i%3], float32(0.5), "example %d", i)
		}
	}
	broken := errors.New("broken")
	for want, row := range map[string]struct {
		folds int
		fit   func(context.Context, int, *data.Set) (*flaxlike.Model, error)
	}{
		"selection: cross-validate: fold 1 of 3: broken": {3, func(ctx context.Context, fold int, training *data.Set) (*flaxlike.Model, error) {
			m, err := fit(ctx, fold, training)
			if fold == 1 {
				err = errors.Join(err, broken)
			}
			return m, err
		}},
		"fold 0 of 3: the model is nil":         {3, func(context.Context, int, *data.Set) (*flaxlike.Model, error) { return nil, nil }},
		"fold 0 of 3: panic: oh":                {3, func(context.Context, int, *data.Set) (*flaxlike.Model, error) { panic("oh") }},
		"1 folds: expected at least 2":          {1, fit},
		"the function that fits a model is nil": {3, nil},
	} {
		_, err := selection.CrossValidate(t.Context(), set, row.folds, 0, row.fit)
		require.ErrorContains(t, err, want)
	}
	masked := sorted(t, 3, data.Named(data.Mask, []bool{true, false, true}, 3))
	_, err := selection.CrossValidate(t.Context(), masked, 3, 0, fit)
	require.ErrorContains(t, err, "1 of the set's 3 examples do not count")
}
