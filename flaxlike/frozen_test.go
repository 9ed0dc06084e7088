package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A frozen batch normalisation is as Keras's: its averages stay, and a training step normalises by them.
func TestBatchNorm_frozen(t *testing.T) {
	const trunk = "/model/0/trunk"
	x := make([]float32, 32)
	for i := range x {
		x[i] = float32(i%7) + 5
	}
	set, err := data.New(data.X(x, 32, 1), data.Y(make([]float32, 32), 32, 1))
	require.NoError(t, err)
	net := nn.Sequential{nn.Named{Name: "trunk", Layer: nn.Sequential{nn.Dense{Units: 4}, nn.BatchNorm{}}}, nn.Dense{Units: 1}}
	for _, row := range []struct {
		name  string
		chain []optim.Transformation
		still bool
	}{
		{"frozen", []optim.Transformation{optim.Frozen(optim.Under(trunk)), optim.Adam{}}, true},
		{"in a group", []optim.Transformation{optim.Groups(optim.Group{Name: "a", Match: optim.Under(trunk), Chain: optim.Chain{optim.Frozen(nil)}}, optim.Group{Name: "b"})}, true},
		{"masked", []optim.Transformation{optim.Masked(optim.Under(trunk), optim.Chain{optim.Frozen(nil)})}, true},
		{"its offset alone", []optim.Transformation{optim.Frozen(optim.Under(trunk + "/1/batch_normalization/offset"))}, false},
		{"not", nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newModel(t, net, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(optim.New(0.01, row.chain...)))
			require.NoError(t, m.SetLearningRate(0.001)) // which wraps the optimizer
			batch := first(t, set, 32)
			_, logs, err := m.TestStep(t.Context(), batch)
			require.NoError(t, err)
			tested := float(t, logs, "loss")
			_, logs, err = m.TrainStep(t.Context(), batch)
			require.NoError(t, err)
			mean, err := m.Value(trunk + "/1/batch_normalization/mean")
			require.NoError(t, err)
			if row.still {
				require.InDelta(t, tested, float(t, logs, "loss"), 1e-5*tested, "by its averages")
				require.Equal(t, make([]float32, 4), mean.Value())
			} else {
				require.NotEqual(t, make([]float32, 4), mean.Value())
			}
		})
	}
}
