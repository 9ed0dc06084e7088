package runs_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/runs"
)

// Rows that logrotate numbered are of one run, two tables of another name are two runs, and rows below a folder of
// checkpoints are of its run. Hidden files, folders and files of other content are none.
func TestFind_places(t *testing.T) {
	dir := t.TempDir()
	const rows, other = "elapsed.steps\n1\n", "elapsed,steps\n1,2\n"
	for name, text := range map[string]string{
		"rotated/log.csv": rows, "rotated/log.csv.1": rows, "rotated/log.csv.10": rows,
		"two/a.csv": rows, "two/b.jsonl": `{"elapsed.steps":1}`, "two/b.csv": rows,
		"saves/LOCK": "", "saves/rows/a.csv": rows, "saves/rows/b.csv": rows,
		"other/notes.csv": other, "other/short": "elapsed.", ".hidden/a.csv": rows, "other/.a.csv": rows,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	places, files, err := runs.Find(t.Context(), dir)
	require.NoError(t, err)
	var names []string
	for _, p := range places {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"rotated", "saves", "two/a.csv", "two/b.csv"}, names)
	require.Equal(t, 11, files)

	places, _, err = runs.Find(t.Context(), filepath.Join(dir, "other"))
	require.NoError(t, err)
	require.Empty(t, places)
	_, _, err = runs.Find(t.Context(), filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = runs.Find(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
}
