package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A model takes a part of another one, or of its file, all or nothing, and says what it took, what not and why.
func TestCopyFrom(t *testing.T) {
	set, path := sorted(t, 64), filepath.Join(t.TempDir(), "model.safetensors")
	network := func(classes int) nn.Layer {
		return nn.Sequential{nn.Named{Name: "body", Layer: nn.Dense{Units: 4}}, nn.Named{Name: "head", Layer: nn.Dense{Units: classes}}}
	}
	build := func(classes int, seed int64) *flaxlike.Model {
		m := newModel(t, network(classes), flaxlike.WithSeed(seed))
		require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		return m
	}
	from := build(3, 1)
	require.NoError(t, from.Save(path))
	body := []string{"/model/0/body/bias", "/model/0/body/kernel"}
	for name, take := range map[string]func(*flaxlike.Model, optim.Match) (flaxlike.Copied, error){
		"model": func(m *flaxlike.Model, match optim.Match) (flaxlike.Copied, error) {
			return m.CopyFrom(t.Context(), from, match)
		},
		"file": func(m *flaxlike.Model, match optim.Match) (flaxlike.Copied, error) {
			return m.LoadSome(t.Context(), path, match)
		},
	} {
		m := build(5, 2)
		before := values(t, m)
		_, err := take(m, optim.Under("/model/trunk"))
		require.ErrorContains(t, err, `Under("/model/trunk") matches no variable of the model; there are `, name)
		_, err = take(m, optim.Under("/model/1"))
		require.ErrorContains(t, err, "/model/1/head/bias: it is float32[5] in the model, and float32[3] in the source", name)
		require.Equal(t, before, values(t, m), name)
		for what, match := range map[string]optim.Match{"by name": optim.Under("/model/0"), "what fits": nil} {
			m := build(5, 2)
			copied, err := take(m, match)
			require.NoError(t, err, name)
			require.ElementsMatch(t, body, copied.Taken, name)
			require.Equal(t, []string{"/model/1/head/bias", "/model/1/head/kernel"}, copied.Unused, name)
			require.Contains(t, copied.String(), "2 variables taken, 2 left, 2 unused\n  left /model/1/head/", name)
			for _, v := range body {
				require.True(t, must.M1(from.Value(v)).Equal(must.M1(m.Value(v))), "%s %s %s", name, what, v)
			}
			require.Equal(t, before["/model/1/head/kernel"], values(t, m)["/model/1/head/kernel"], name)
		}
	}
	_, err := newModel(t, network(3)).CopyFrom(t.Context(), from, nil)
	require.ErrorIs(t, err, flaxlike.ErrNotBuilt)
	other := newModel(t, nn.Named{Name: "other", Layer: nn.Dense{Units: 3}})
	require.NoError(t, other.Init(t.Context(), first(t, set, 32)))
	_, err = other.CopyFrom(t.Context(), from, nil)
	require.ErrorContains(t, err, "nothing fits:\n  /model/other/")
}
