package launch

import "syscall"

// attributes put a process into a group of its own, so that a Ctrl-C goes the way of [Run], and send it a signal when
// this process dies.
func attributes(atDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atDeath}
}
