package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/optim"
)

// R30: a model with a mixed policy takes back what it saved, and another one takes it too.
func TestR30_loadUnderAPolicy(t *testing.T) {
	set := sorted(t, 64)
	for name, policy := range map[string]optim.Policy{"bfloat16": optim.MixedBFloat16(), "float16": optim.MixedFloat16()} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.safetensors")
			m := newModel(t, normalised(), flaxlike.WithLoss(sparse), flaxlike.WithPolicy(policy))
			_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
			require.NoError(t, err)
			require.NoError(t, m.Save(path))
			saved := values(t, m)
			_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 1}))
			require.NoError(t, err)
			require.NotEqual(t, saved, values(t, m))
			require.NoError(t, m.Load(t.Context(), path))
			require.Equal(t, saved, values(t, m))
			for _, options := range [][]flaxlike.Option{nil, {flaxlike.WithPolicy(policy)}} { // into float32 too
				other := newModel(t, normalised(), append(options, flaxlike.WithLoss(sparse), flaxlike.WithSeed(3))...)
				require.NoError(t, other.Init(t.Context(), first(t, set, 32)))
				require.NoError(t, other.Load(t.Context(), path))
				require.Equal(t, saved, values(t, other))
			}
		})
	}
}
