//go:build !linux

package launch

import "syscall"

func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
