//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks a file until it is closed. taken reports that another has the lock.
func TryLock(file *os.File) (taken bool, err error) { return tryLock(file, unix.LOCK_EX) }

func tryLockShared(file *os.File) (taken bool, err error) { return tryLock(file, unix.LOCK_SH) }

func tryLock(file *os.File, how int) (taken bool, err error) {
	for {
		switch err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return true, nil
		default:
			return false, err
		}
	}
}

func syncFolder(file *os.File) error { return file.Sync() }
