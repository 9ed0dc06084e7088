package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks a file until it is closed. taken reports that another has the lock. The locked byte is far after the
// note: locked bytes cannot be read.
func TryLock(file *os.File) (taken bool, err error) {
	return tryLock(file, windows.LOCKFILE_EXCLUSIVE_LOCK)
}

func tryLockShared(file *os.File) (taken bool, err error) { return tryLock(file, 0) }

func tryLock(file *os.File, how uint32) (taken bool, err error) {
	at := &windows.Overlapped{OffsetHigh: 1}
	err = windows.LockFileEx(windows.Handle(file.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}

// Windows journals folders.
func syncFolder(*os.File) error { return nil }
