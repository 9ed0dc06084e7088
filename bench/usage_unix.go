//go:build unix

package main

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func usage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no process of its own
	return u
}

func cpuSeconds() float64 {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// rssMB is the largest resident size that the process had.
func rssMB() int {
	if runtime.GOOS == "darwin" {
		return int(usage().Maxrss >> 20)
	}
	return int(usage().Maxrss >> 10)
}

// syncDisks writes what is in memory to the disks.
func syncDisks() { unix.Sync() }
