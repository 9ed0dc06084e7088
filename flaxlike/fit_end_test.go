package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// Settings that a run does not reach are reported in the words of Fit. The set has 2 batches.
func TestFit_endBeforeAnEpoch(t *testing.T) {
	set := line(t, 64)
	for _, row := range []struct {
		name string
		fit  flaxlike.Fit
		err  string
	}{
		{"until below an epoch", flaxlike.Fit{Until: loop.Steps(1), Validation: set},
			"flaxlike: fit: Until is 1 step, and an epoch has 2 steps (StepsPerEpoch): no epoch would end, and only at the end of an epoch metrics are reset, the history gets a row and Validation is evaluated\n  set StepsPerEpoch to 1 or less"},
		{"validation below the epochs", flaxlike.Fit{Epochs: 2, Validation: set, ValidationEvery: 3},
			"flaxlike: fit: ValidationEvery is 3 epochs, and Epochs is 2: there would be no test\n  set ValidationEvery to 2 or less"},
		{"validation below until", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationEvery: 3},
			"flaxlike: fit: ValidationEvery is 3 epochs, and Until is 5 steps, and an epoch has 2 steps (StepsPerEpoch): there would be no test\n  set ValidationEvery to 2 or less"},
		{"validation at", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationAt: []int{1, 3}},
			"flaxlike: fit: ValidationAt has epoch 3, and Until is 5 steps, and an epoch has 2 steps (StepsPerEpoch): expected 1 to 2"},
		{"enough", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationEvery: 2}, ""},
		{"of samples nobody knows", flaxlike.Fit{Until: loop.Samples(200), Validation: set}, ""},
		{"a dry run", flaxlike.Fit{Until: loop.Steps(1), Validation: set, FastDevRun: true}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).Fit(t.Context(), set, quiet(row.fit))
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, row.err)
		})
	}
}
