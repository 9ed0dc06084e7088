//go:build nightly

package checkpoint_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
)

func TestF05_realSmallDisk(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("not allowed to mount (%v): TestF05_eachCallFails stands for it", err)
		return
	}
	defer unix.Unmount(mount, unix.MNT_DETACH) // the folder goes with the test
	f, err := checkpoint.Open(mount+"/run", checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{checkpoint.Last(1)}})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Save(t.Context(), 1, payload(1, 400<<10)))
	require.ErrorIs(t, f.Save(t.Context(), 2, payload(2, 700<<10)), syscall.ENOSPC)
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
	require.NoError(t, f.Save(t.Context(), 3, payload(3, 400<<10)), "the space is free again")
	require.Equal(t, []checkpoint.Step{3}, steps(t, f))
	t.Log("F05: a tmpfs of 1 MB: ENOSPC, step 1 intact, step 3 saved")
}
