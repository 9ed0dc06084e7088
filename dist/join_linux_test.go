package dist_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/ranks"
)

// handlers returns the address and the flags of the handler of each signal.
func handlers() (all [65][2]uintptr) {
	for number := range all {
		var action [4]uintptr // the handler, its flags, and what differs between machines
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(number), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
		copy(all[number][:], action[:])
	}
	return all
}

// S50: after Join, all signals have the handlers that they had before, also where MPI loads UCX, so a rank receives
// each SIGHUP.
func TestS50_joinKeepsHandlers(t *testing.T) {
	if !ranks.Over(t, 2) {
		return
	}
	before := handlers()
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	t.Log(job)
	unchanged := func(when string) {
		for number, now := range handlers() {
			require.Equal(t, before[number], now, "%s: handler and flags of %v", when, syscall.Signal(number))
		}
	}
	unchanged("after Join")
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	defer signal.Stop(received)
	for range 10 * faultTimes {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.Equal(t, syscall.SIGHUP, <-received)
	}
	require.NoError(t, job.Barrier("received"))
	unchanged("after a barrier")
	require.NoError(t, job.Close())
}
