package flaxlike_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// R08: batches that end before the run was to are an error that says so; what was made of them stays.
func TestR08_batchesThatEndEarly(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	h, err := m.FitBatches(t.Context(), loop.Data[data.Batch](line(t, 64).Batches(16).All()), quiet(flaxlike.Fit{Epochs: 5, StepsPerEpoch: 4}))
	require.ErrorIs(t, err, flaxlike.ErrDataEnded)
	require.EqualError(t, err, "flaxlike: fit: the batches ended after 4 steps, in epoch 2 of 4 steps each: expected batches until 5 epochs: give more batches, or end the run there, by Epochs, StepsPerEpoch or Until")
	require.Equal(t, 1, h.Len())
	_, err = m.FitBatches(t.Context(), line(t, 64).Batches(16), quiet(flaxlike.Fit{StepsPerEpoch: 4}))
	require.NoError(t, err)
	bad := line(t, 64)
	bad.Fields()[1].Array.Flat.([]float32)[40] = float32(math.NaN())
	_, err = m.FitBatches(t.Context(), bad.Batches(16), quiet(flaxlike.Fit{StepsPerEpoch: 4}))
	require.ErrorContains(t, err, `flaxlike: fit: step 3: train step: field "y": label NaN of example 8 in the batch is out of range`)
}
