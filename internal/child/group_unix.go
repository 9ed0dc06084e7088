//go:build unix

package child

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Group makes an unstarted command a process group, for [KillGroup].
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func KillGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Signal returns the signal that ended a process, by its Wait's error, or 0.
func Signal(waitErr error) syscall.Signal {
	if exit := (*exec.ExitError)(nil); errors.As(waitErr, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

func SignalName(signal syscall.Signal) string { return unix.SignalName(signal) }
