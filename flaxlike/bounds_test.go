package flaxlike_test

import (
	"math"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Sample weights in both types of floats: all 0 is an error, and what counts 0 may have any label.
func TestS33_sampleWeightsInBothTypes(t *testing.T) {
	x, labels := data.X(make([]float32, 8), 4, 2), []int32{0, 1, 9, 0}
	train := func(of data.Field) error {
		m := newModel(t, nn.Dense{Units: 2}, flaxlike.WithLoss(sparse), flaxlike.WithSampleWeights("w"))
		_, err := m.Fit(t.Context(), must.M1(data.New(x, data.Y(labels, 4), of)), quiet(flaxlike.Fit{}))
		return err
	}
	for name, of := range map[string]data.Field{"float32": data.Named("w", make([]float32, 4), 4), "float64": data.Named("w", make([]float64, 4), 4),
		"float64 of one column": data.Named("w", make([]float64, 4), 4, 1)} {
		err := train(of)
		require.ErrorIs(t, err, flaxlike.ErrValue, name)
		require.ErrorContains(t, err, `field "w": the sample weights of all 4 examples in the set are 0`, name)
	}
	require.NoError(t, train(data.Named("w", []float32{1, 1, 0, 2}, 4)), "the label 9 counts 0")
	require.NoError(t, train(data.Named("w", []float64{1, 1, 0, 2}, 4)), "the label 9 counts 0")
	require.ErrorIs(t, train(data.Named("w", []float64{1, 1, 1, 2}, 4)), flaxlike.ErrValue)
}

// Labels of each type are compared with the bounds of their loss: the first one outside is named, one at the bound is
// right.
func TestLabels_bounds(t *testing.T) {
	for _, row := range []struct {
		name, loss, wrong string // "" for what is right
		width             int
		y                 any
	}{
		{"the last class", sparse, "", 3, []int64{0, 2, 1}},
		{"a class too many", sparse, "label 3 of example 1 in the set is outside of the classes 0…2", 3, []int64{0, 3, 1}},
		{"a class too many in bytes", sparse, "label 200 of example 2 in the set is outside of the classes 0…2", 3, []uint8{0, 2, 200}},
		{"a class below 0", sparse, "label -1 of example 0 in the set is outside of the classes 0…2", 3, []int32{-1, 0, 3}},
		{"signs", "hinge", "", 1, []float32{-1, 1, 1}},
		{"no signs", "hinge", "label 0 of example 2 in the set is out of range: hinge takes only -1 and 1", 1, []float32{-1, 1, 0}},
		{"counts", "poisson", "", 1, []float32{0, 7, 1e6}},
		{"numbers from 0 on", "msle", "", 1, []float32{0, 0.5, 1e6}},
		{"a number below 0", "msle", "label -0.5 of example 1 in the set is out of range: msle takes numbers from 0 on", 1, []float32{0, -0.5, 2}},
		{"a number below 0 by the long name", "mean_squared_logarithmic_error", "mean_squared_logarithmic_error takes numbers from 0 on", 1, []float32{0, -0.5, 2}},
		{"a count below 0", "poisson", "label -1 of example 1 in the set is out of range: poisson takes counts, from 0 on", 1, []float32{0, -1, 2}},
		{"shares", "binary_crossentropy", "", 1, []float64{0, 0.3, 1}},
		{"a share above 1", "binary_crossentropy", "label 1.5 of example 1 in the set is out of range", 1, []float64{0, 1.5, 1}},
		{"not a number", "mse", "label NaN of example 2 in the set is out of range: mse takes finite numbers", 1, []float32{0, 1, float32(math.NaN())}},
		{"infinite", "mse", "label -Inf of example 0 in the set is out of range: mse takes finite numbers", 1, []float64{math.Inf(-1), 0, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dims := []int{3}
			if row.width == 1 {
				dims = []int{3, 1}
			}
			set := must.M1(data.New(data.X(make([]float32, 3), 3, 1), data.Named("y", row.y, dims...)))
			_, err := newModel(t, nn.Dense{Units: row.width}, flaxlike.WithLoss(row.loss)).Fit(t.Context(), set, quiet(flaxlike.Fit{}))
			if row.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, flaxlike.ErrValue)
			require.ErrorContains(t, err, row.wrong)
		})
	}
}
