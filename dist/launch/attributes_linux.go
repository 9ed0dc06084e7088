package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// attributes put a process into a group of its own, so that a Ctrl-C goes the way of [Run], and send it a signal when
// this process dies.
func attributes(atDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atDeath}
}

// runs reports whether a process has not ended. One that its parent has not waited for has.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	end := bytes.LastIndexByte(stat, ')') // of the name
	return err != nil || end < 0 || !bytes.HasPrefix(stat[end+1:], []byte(" Z")) && !bytes.HasPrefix(stat[end+1:], []byte(" X"))
}
