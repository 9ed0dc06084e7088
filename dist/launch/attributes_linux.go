package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// attributes: [Run] handles a Ctrl-C, and the process gets a signal at this one's death.
func attributes(atDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atDeath}
}

// runs is false for a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	end := bytes.LastIndexByte(stat, ')')
	return err != nil || end < 0 || !bytes.HasPrefix(stat[end+1:], []byte(" Z")) && !bytes.HasPrefix(stat[end+1:], []byte(" X"))
}
