//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRuns(t *testing.T) {
	require.True(t, runs(os.Getpid()))
	cmd := exec.Command("cat")
	cmd.SysProcAttr = attributes(syscall.SIGKILL)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	require.True(t, runs(pid))
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, group, "a process group of its own: a Ctrl-C does not reach it")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	require.False(t, runs(pid))
}
