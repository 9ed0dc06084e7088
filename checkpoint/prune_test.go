package checkpoint_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// S56: damaged checkpoints do not count as the one that stays.
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

// S56: a step was saved twice, and the later one is damaged: the earlier one stays.
func TestPruneKeepsTheEarlierOfAStep(t *testing.T) {
	m := saved(t, 1, 2)
	commit := read(t, m, dir(2)+"/COMMIT")
	write(t, m, dir(2)+"/COMMIT", nil) // so that it may be saved again
	f := openMem(t, m, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 2, content(9)))
	require.NoError(t, f.Close())
	write(t, m, dir(2)+"/COMMIT", commit)
	later := dir(2) + ".2/state.safetensors"
	text := read(t, m, later)
	text[len(text)-1] ^= 1
	write(t, m, later, text)

	f = openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	require.NoError(t, f.Prune(t.Context()))
	names, err := m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{"LOCK", dir(1), dir(2), dir(2) + ".2"}, names)
}

// S56: a save keeps the checkpoint that it has written, also where no rule does.
func TestPruneKeepsTheNewest(t *testing.T) {
	f := openMem(t, saved(t), checkpoint.Options{Keep: []checkpoint.Retention{{EverySteps: 10}}})
	save(t, f, 1, 2, 3)
	require.Equal(t, []checkpoint.Step{1, 3}, steps(t, f))
}
