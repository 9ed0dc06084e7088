//go:build unix

package child

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The children of a killed command end too: Wait returns only when none holds the output.
func TestKillGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 600 & echo started; wait")
	Group(cmd)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, KillGroup(cmd))
	_, err = out.Read(make([]byte, 8))
	require.Error(t, err, "nobody holds the output")
	killed := cmd.Wait()
	require.Equal(t, syscall.SIGKILL, Signal(killed))
	require.Equal(t, "SIGKILL", SignalName(Signal(killed)))
	require.ErrorContains(t, Death(killed), "died of SIGKILL")
}

func TestSignal_ofOtherEnds(t *testing.T) {
	for _, err := range []error{nil, errors.New("not started"), exec.Command("false").Run()} {
		require.Zero(t, Signal(err), "%v", err)
	}
}
