package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Only Sync makes it durable and returns errors.
func writeBack(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
