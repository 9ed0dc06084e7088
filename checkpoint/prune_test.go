package checkpoint_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

func TestPruneKeepsOneThatIsRight(t *testing.T) {
	m := saved(t, 1, 2, 3, 4)
	for _, s := range []checkpoint.Step{3, 4} { // damage that the manifests do not show
		path := dir(s) + "/state.safetensors"
		text := read(t, m, path)
		text[len(text)-1] ^= 1
		write(t, m, path, text)
	}
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	require.NoError(t, f.Prune(t.Context()))
	require.Equal(t, []checkpoint.Step{2, 3, 4}, steps(t, f))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, version(t, c))

	write(t, m, dir(2)+"/state.safetensors", bytes.Repeat([]byte{7}, len(read(t, m, dir(2)+"/state.safetensors"))))
	require.ErrorContains(t, f.Prune(t.Context()), "no checkpoint is intact")
	require.NoError(t, f.Save(t.Context(), 5, content(5)))
	require.Equal(t, []checkpoint.Step{5}, steps(t, f), "a new one is right")
}
