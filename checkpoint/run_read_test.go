package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// The description has the newest checkpoint's progress and history, and how the run ended.
func TestFolderRun(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	r, err := f.Run(t.Context()) // opened for writing
	require.NoError(t, err)
	require.Zero(t, r.Elapsed.Steps)
	require.Equal(t, checkpoint.Interrupted, r.Status)
	for _, until := range []loop.Steps{10, 15} {
		stopping(t, f, until)
		r, err := f.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, until, r.Elapsed.Steps)
		require.Equal(t, checkpoint.Ended, r.Status)
		require.Contains(t, r.Why, "until reached")
		rows := 0
		for range r.History.Rows() {
			rows++
		}
		require.EqualValues(t, until, rows)
	}
}
