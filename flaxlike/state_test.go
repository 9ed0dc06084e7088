package flaxlike_test

import (
	"context"
	"io"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// TestS19_changesOutdateWhatWasFound: each way to change a model's weights outdates its calibration.
func TestS19_changesOutdateWhatWasFound(t *testing.T) {
	set := tooSure(t, 120)
	for name, change := range map[string]func(context.Context, *flaxlike.Model) error{
		"SetValue": func(_ context.Context, m *flaxlike.Model) error {
			return m.SetValue("/model/0/bias", tensors.FromValue([]float32{1, 2, 3}))
		},
		"Restore": func(ctx context.Context, m *flaxlike.Model) error {
			folder := must.M1(checkpoint.Open(t.TempDir(), checkpoint.Options{}))
			if err := folder.Save(ctx, 1, must.M1(m.Content(ctx))); err != nil {
				return err
			}
			return m.Restore(ctx, must.M1(folder.Load(ctx, 1)))
		},
		"Snapshot.Restore": func(ctx context.Context, m *flaxlike.Model) error {
			copied := must.M1(m.Snapshot(ctx))
			defer copied.Close()
			return copied.Restore(ctx)
		},
		"SetOptimizer": func(ctx context.Context, m *flaxlike.Model) error {
			return m.SetOptimizer(ctx, optim.New(0.1, optim.Adam{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
			_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 3, Output: io.Discard})
			require.NoError(t, err)
			_, err = m.Calibrate(t.Context(), set)
			require.NoError(t, err)
			require.NoError(t, m.SetLearningRate(0.5), "which changes no weight")
			_, err = must.M1(m.Predict(t.Context(), set)).Probabilities()
			require.NoError(t, err)
			require.NoError(t, change(t.Context(), m))
			_, err = must.M1(m.Predict(t.Context(), set)).Probabilities()
			require.ErrorIs(t, err, flaxlike.ErrOutdated)
		})
	}
}
