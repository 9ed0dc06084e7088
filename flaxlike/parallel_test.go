package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A model learns the same on two devices as on one, with a last batch of a test that is not full.
func TestDataParallel(t *testing.T) {
	r, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", 2))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	two, err := strategies.DataParallel(r)
	require.NoError(t, err)
	set := sorted(t, 80)
	learn := func(options ...flaxlike.Option) (*flaxlike.Model, []float64) {
		m := newModel(t, flaxlike.Dense(3), append([]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy")}, options...)...)
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3, Validation: set}))
		require.NoError(t, err)
		return m, append(series(t, h, "loss_val"), series(t, h, "accuracy")...)
	}
	_, one := learn()
	m, both := learn(flaxlike.WithStrategy(two))
	require.InDeltaSlice(t, one, both, 1e-5)
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, m.Save(path))
	other := newModel(t, flaxlike.Dense(3), flaxlike.WithStrategy(two), flaxlike.WithSeed(5))
	require.NoError(t, other.Init(t.Context(), first(t, set, 8)))
	require.NotEqual(t, values(t, m), values(t, other))
	require.NoError(t, other.Load(t.Context(), path))
	require.Equal(t, values(t, m), values(t, other))
}
