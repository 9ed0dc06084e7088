package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// A model learns the same on two devices as on one, with a last batch, of training and of a test, that is not full and
// that two devices cannot divide.
func TestDataParallel(t *testing.T) {
	r := plugintest.Devices(t, 2)
	two, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	set := sorted(t, 79)
	learn := func(options ...flaxlike.Option) (*flaxlike.Model, []float64) {
		m := newModel(t, nn.Dense{Units: 3}, append([]flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy")}, options...)...)
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3, Validation: set}))
		require.NoError(t, err)
		return m, append(series(t, h, "val_loss"), series(t, h, "accuracy")...)
	}
	_, one := learn()
	m, both := learn(flaxlike.WithStrategy(two))
	require.InDeltaSlice(t, one, both, 1e-5)
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, m.Save(path))
	other := newModel(t, nn.Dense{Units: 3}, flaxlike.WithStrategy(two), flaxlike.WithSeed(5))
	require.NoError(t, other.Init(t.Context(), first(t, set, 8)))
	require.NotEqual(t, values(t, m), values(t, other))
	require.NoError(t, other.Load(t.Context(), path))
	require.Equal(t, values(t, m), values(t, other))
}
