package checkpoint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

func TestSaveOfAStepThatIsThere(t *testing.T) {
	m := saved(t, 1, 2)
	f := openMem(t, m, checkpoint.Options{})
	err := f.Save(t.Context(), 2, content(7))
	require.ErrorIs(t, err, checkpoint.ErrExists)
	require.ErrorContains(t, err, "set Overwrite")
	require.NoError(t, f.Close())

	f = openMem(t, m, checkpoint.Options{Overwrite: true})
	require.NoError(t, f.Save(t.Context(), 2, content(7)))
	require.NoError(t, f.Save(t.Context(), 2, content(8)))
	names, err := m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{"LOCK", dir(1), dir(2) + ".3"}, names)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, version(t, c))
	require.NoError(t, f.Close())

	write(t, m, dir(2)+".3/COMMIT", nil)
	f = openMem(t, m, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 2, content(9)), "what is there is damaged")
	c, err = f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9, version(t, c))
	names, err = m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{"LOCK", dir(1), dir(2) + ".3", dir(2) + ".4"}, names, "and it stays")
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	keep := func(r ...checkpoint.Retention) checkpoint.Options { return checkpoint.Options{Keep: r} }
	for _, c := range []struct {
		name, dir string
		options   checkpoint.Options
		want      string
	}{
		{"no name", "", checkpoint.Options{}, "no name"},
		{"a name for a shell", "~/run", checkpoint.Options{}, "only a shell expands"},
		{"a file", file, checkpoint.Options{}, "not a directory: it is a file, expected a folder of checkpoints"},
		{"a file to read", file, checkpoint.Options{ReadOnly: true}, "not a directory: it is a file, expected a folder of checkpoints"},
		{"none to read", file + "s", checkpoint.Options{ReadOnly: true}, "no such file"},
		{"none kept", t.TempDir(), keep(checkpoint.Retention{Last: 2}, checkpoint.Retention{Last: -1}), "keep 2 of 2: {Last: -1}: the numbers must not be negative"},
		{"no best", t.TempDir(), keep(checkpoint.Retention{Best: -1, Metric: "acc"}), `{Best: -1, Metric: "acc"}`},
		{"best of nothing", t.TempDir(), keep(checkpoint.Retention{Best: 1, Mode: loop.Lowest}), "the metric has no name"},
		{"a metric that is not counted", t.TempDir(), keep(checkpoint.Retention{Last: 1, Metric: "loss"}), "Metric or Mode is set, but not Best"},
		{"a metric of an unknown kind", t.TempDir(), keep(checkpoint.Retention{Best: 1, Metric: "energy"}), "set Mode to loop.Lowest or loop.Highest"},
		{"an empty retention", t.TempDir(), keep(checkpoint.Retention{}), "without content"},
		{"no stretch", t.TempDir(), keep(checkpoint.Retention{EverySteps: -1}), "EverySteps: -1"},
		{"no time", t.TempDir(), keep(checkpoint.Retention{EveryTime: -1}), "EveryTime: -1ns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := checkpoint.Open(c.dir, c.options)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "checkpoint: open ")
		})
	}
	_, err := os.Stat("~")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
