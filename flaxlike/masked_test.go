package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Examples that a set's mask excludes count neither in a test's loss nor among the predictions.
func TestSetWithMask_examplesCount(t *testing.T) {
	x, y, mask := make([]float32, 40), make([]float32, 40), make([]bool, 40)
	var want []float32
	for i := range x {
		x[i], y[i], mask[i] = float32(i), 3, i%8 < 3
		if mask[i] {
			want = append(want, x[i])
		} else {
			x[i], y[i] = 500, -500
		}
	}
	masked, err := data.New(data.X(x, 40, 1), data.Y(y, 40, 1), data.Named(data.Mask, mask, 40))
	require.NoError(t, err)
	labels := make([]float32, len(want))
	for i := range labels {
		labels[i] = 3
	}
	real, err := data.New(data.X(want, len(want), 1), data.Y(labels, len(want), 1))
	require.NoError(t, err)
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	found, err := m.Evaluate(t.Context(), masked)
	require.NoError(t, err)
	expected, err := m.Evaluate(t.Context(), real)
	require.NoError(t, err)
	require.InEpsilon(t, expected["loss"], found["loss"], 1e-5)
	got, err := m.Predict(t.Context(), masked)
	require.NoError(t, err)
	all, err := m.Predict(t.Context(), real)
	require.NoError(t, err)
	require.Equal(t, output(t, all).Dims, output(t, got).Dims)
	require.InDeltaSlice(t, output(t, all).Flat, output(t, got).Flat, 1e-4)
	var resident []float32
	for p, err := range m.PredictBatches(t.Context(), data.OnDevice(masked).Batches(8)) {
		require.NoError(t, err)
		resident = append(resident, output(t, p).Flat.([]float32)...)
	}
	require.InDeltaSlice(t, output(t, all).Flat, resident, 1e-4)
	// Examples that a caller chooses from a resident set keep the set's mask.
	chosen, err := m.PredictBatch(t.Context(), data.Batch{Fields: []data.Field{data.Named(data.Rows, []int32{1, 7, 8, 39}, 4)}, Size: 4, Resident: data.OnDevice(masked)})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{output(t, all).Flat.([]float32)[1], output(t, all).Flat.([]float32)[3]}, output(t, chosen).Flat, 1e-4)
}
