//go:build unix

package board

import (
	"syscall"
	"time"
)

// cpuTime is that of the process, 0 if unknown.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
