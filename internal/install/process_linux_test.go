package install

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestF25_RealSmallDisk(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 2_000_000))
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("not allowed to mount (%v): the file size limit of TestF25_DiskFull stands for it", err)
		return
	}
	defer unix.Unmount(mount, unix.MNT_DETACH) // the folder goes with the test
	x := serve(t, one)
	_, err := Install(t.Context(), "toy", x.options(mount, one))
	require.ErrorIs(t, err, syscall.ENOSPC)
	tidy(t, mount, false)
}
