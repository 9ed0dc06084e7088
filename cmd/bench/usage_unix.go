//go:build unix

package main

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func usage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for RUSAGE_SELF
	return u
}

func cpuSeconds() float64 {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func rssMB() int {
	if runtime.GOOS == "darwin" {
		return int(usage().Maxrss >> 20)
	}
	return int(usage().Maxrss >> 10)
}

func syncDisks() { unix.Sync() }
