//go:build nightly

package checkpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
)

const (
	mountChild = "LAZO_CHECKPOINT_TEST_MOUNT"
	smallDisk  = "F05: a tmpfs of 1 MB: ENOSPC, step 1 intact, step 3 saved"
)

func TestF05_realSmallDisk(t *testing.T) {
	mount := t.TempDir()
	err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=1m")
	if errors.Is(err, syscall.EPERM) && os.Getenv(mountChild) == "" { // in a namespace of its own any user may
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), mountChild+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := child.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), smallDisk)
		t.Log(smallDisk)
		return
	}
	require.NoError(t, err, "this test mounts a tmpfs: as root, or where users may have namespaces")
	defer unix.Unmount(mount, unix.MNT_DETACH) // the folder goes with the test
	f, err := checkpoint.Open(mount+"/run", checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{{Last: 1}}})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Save(t.Context(), 1, payload(1, 400<<10)))
	require.ErrorIs(t, f.Save(t.Context(), 2, payload(2, 700<<10)), syscall.ENOSPC)
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
	require.NoError(t, f.Save(t.Context(), 3, payload(3, 400<<10)), "the space is free again")
	require.Equal(t, []checkpoint.Step{3}, steps(t, f))
	t.Log(smallDisk)
}
