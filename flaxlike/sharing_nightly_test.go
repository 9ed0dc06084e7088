//go:build nightly

package flaxlike_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

func init() {
	besideAFit, besideFor, modelsLeftOpen, sizesPredicted = 100_000, 20*time.Second, 500, 500
}

// R33: the error of a training with too many shapes names an option of the model, not of managed.
func TestR33_shapesOfATraining(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	var err error
	for n := 1; n <= 101 && err == nil; n++ {
		_, _, err = m.TrainStep(t.Context(), first(t, line(t, n), n))
	}
	require.ErrorIs(t, err, managed.ErrShapes)
	require.EqualError(t, err, "flaxlike: train: too many shapes of batches: each is a program to be compiled: give it batches of one shape (data.Pad, data.PadSequences)")
}
