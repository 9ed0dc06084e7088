package checkpoint_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// A save that fails ends the run, or does not.
func TestF05_aRunWhoseSavesFail(t *testing.T) {
	for tolerate, want := range []error{syscall.ENOSPC, nil} {
		full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpWrite, N: 1, Err: syscall.ENOSPC})
		f := openMem(t, full, checkpoint.Options{})
		_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(60)),
			f.Resume(checkpoint.Every(loop.Steps(10)), checkpoint.Options{Tolerate: tolerate}))
		require.ErrorIs(t, err, want)
		if want == nil {
			all := steps(t, f)
			require.EqualValues(t, 60, all[len(all)-1])
		}
	}
	// The last save is not among those that may fail.
	full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpWrite, N: 1, On: true, Err: syscall.ENOSPC})
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(60)),
		saves(openMem(t, full, checkpoint.Options{}), loop.Never, checkpoint.Options{Tolerate: 5}))
	require.ErrorIs(t, err, syscall.ENOSPC)
	t.Log("F05: ENOSPC in a run: an error.Is of the run, or tolerated, with the last step saved")
}
