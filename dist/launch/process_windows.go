package launch

import (
	"errors"
	"os"
	"syscall"
)

func attributes(syscall.Signal) *syscall.SysProcAttr { return nil }

func runs(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	return process.Release() == nil
}

func signalAll(pid int, _ syscall.Signal) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill() // it may have ended
	}
}

func own(os.FileInfo) bool { return false }

const nonblocking = 0

func makePipe(string) error {
	return errors.New("jobs of several processes are not supported on Windows")
}
