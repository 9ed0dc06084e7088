//go:build unix

package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalAll sends to a process, and to all of its group where it leads one: `go run` passes no signal on.
func signalAll(pid int, s syscall.Signal) {
	if group, err := unix.Getpgid(pid); err == nil && group == pid {
		pid = -pid
	}
	_ = syscall.Kill(pid, s) // it may have ended
}

const nonblocking = unix.O_NONBLOCK

// makePipe makes a named pipe.
func makePipe(path string) error { return unix.Mkfifo(path, 0o600) }
