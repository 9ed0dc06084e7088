package flaxlike_test

import (
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
