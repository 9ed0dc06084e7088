package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack has the kernel begin to write a part of a file to the disk, and does not wait for it. Nothing relies on it:
// it is Sync that makes the file durable, and that tells of errors.
func writeBack(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
