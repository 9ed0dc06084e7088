package runs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// The last line of a file that a run writes may be incomplete anywhere, a line before it may not.
func TestRuns_whoseLastLineIsIncomplete(t *testing.T) {
	for _, recorder := range []func(string, loop.Schedule) loop.Callback{callbacks.JSONL, callbacks.CSV} {
		dir := t.TempDir()
		path := filepath.Join(dir, "log")
		require.NoError(t, train(t, "", 3, nil, recorder(path, loop.EachStep)))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		whole := strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n") + 1
		for end := whole; end < len(text); end++ {
			require.NoError(t, os.WriteFile(path, text[:end], 0o600))
			r := read(t, dir)[filepath.Base(dir)]
			require.NoError(t, r.Err)
			require.EqualValues(t, 2, r.Steps)
			require.EqualValues(t, 1, r.Values["losses.loss"].Last)
		}
		broken := strings.Replace(string(text), "2", "x", 1)
		require.NoError(t, os.WriteFile(path, []byte(broken), 0o600))
		r := read(t, dir)[filepath.Base(dir)]
		require.ErrorContains(t, r.Err, path)
		require.Empty(t, r.Values, "no value of a damaged file")
	}
	dir := t.TempDir()
	require.NoError(t, train(t, "", 3, nil, tensorboard.Write(dir, loop.EachStep, tensorboard.Evaluations())))
	files, err := filepath.Glob(filepath.Join(dir, "train", "*"))
	require.NoError(t, err)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for cut := 1; cut < 60; cut++ {
		require.NoError(t, os.WriteFile(files[0], text[:len(text)-cut], 0o600))
		r := read(t, dir)[filepath.Base(dir)]
		require.NoError(t, r.Err)
		require.EqualValues(t, 2, r.Steps)
	}
	text[20]++
	require.NoError(t, os.WriteFile(files[0], text, 0o600))
	require.ErrorContains(t, read(t, dir)[filepath.Base(dir)].Err, "wrong checksum")
}
