//go:build unix && !linux

package launch

import "syscall"

func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// runs reports whether a process is known, as one is that its parent has not waited for.
func runs(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }
