package child

import (
	"os/exec"
	"syscall"
)

func Group(*exec.Cmd) {}

// KillGroup kills a started command. On Windows its children continue.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func Signal(error) syscall.Signal { return 0 }

func SignalName(signal syscall.Signal) string { return signal.String() }
