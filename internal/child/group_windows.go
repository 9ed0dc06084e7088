package child

import (
	"os/exec"
	"syscall"
)

// Group does nothing on Windows: a command has no process group there.
func Group(*exec.Cmd) {}

// KillGroup kills a started command. On Windows its children go on.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// Signal returns 0: no process ends by a signal on Windows.
func Signal(error) syscall.Signal { return 0 }

// SignalName returns the name of a signal.
func SignalName(signal syscall.Signal) string { return signal.String() }
