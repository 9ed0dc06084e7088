package decision_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike/decision"
)

// The numbers are tested against other libraries in package flaxlike.
func TestRefuses(t *testing.T) {
	var c decision.Calibration
	nan := math.NaN()
	for want, err := range map[string]error{
		"decision: there are 3 logits and 1 labels for 2 classes":              c.FitTemperature([]float64{1, 2, 3}, []float64{1}, 2),
		"decision: label 1 is 2, expected a class from 0 to 1":                 c.FitTemperature([]float64{1, 2, 3, 4}, []float64{1, 2}, 2),
		"decision: label 0 is -1, expected a class from 0 to 1, or the shares": c.FitTemperature([]float64{1, 2}, []float64{-1, 2}, 2),
		"decision: number 1 is NaN, expected finite numbers":                   c.FitTemperature([]float64{1, nan}, []float64{1}, 2),
		"decision: there are 1 numbers for 2 examples":                         c.FitPlatt([]float64{1}, []bool{true, false}),
		"decision: 2 of 2 examples belong to it":                               c.FitPlatt([]float64{1, 2}, []bool{true, true}),
		"decision: its logits are no higher where the label is 1":              c.FitPlatt([]float64{2, 1}, []bool{false, true}),
		"decision: the calibration is scale -1, shift 1":                       decision.Calibration{Scale: -1, Shift: 1}.Check(),
	} {
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, c, "an error sets nothing")
}
