//go:build unix && !linux

package launch

import "syscall"

func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func runs(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }
