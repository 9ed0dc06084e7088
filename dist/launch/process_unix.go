//go:build unix

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalAll also signals a process's group: `go run` does not forward signals.
func signalAll(pid int, s syscall.Signal) {
	if group, err := unix.Getpgid(pid); err == nil && group == pid {
		pid = -pid
	}
	_ = syscall.Kill(pid, s) // it may have ended
}

const nonblocking = unix.O_NONBLOCK

func own(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func makePipe(path string) error { return unix.Mkfifo(path, 0o600) }
