package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

//lazo:norace
func TestOptimizersByName(t *testing.T) {
	for _, name := range []string{"sgd", "momentum", "nesterov", "adam", "adamw", "adamax", "rmsprop", "adagrad", "adadelta", "nadam", "lion", "lamb", "adafactor"} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(name), flaxlike.WithLearningRate(0.02))
			h, err := m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{Epochs: 20}))
			require.NoError(t, err)
			losses := series(t, h, "loss")
			require.Less(t, losses[19], losses[0])
			rate, err := m.LearningRate()
			require.NoError(t, err)
			require.InDelta(t, 0.02, rate, 1e-7)
		})
	}
}
