//go:build unix

package install

import (
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}

func stateOf(path string) string {
	var s unix.Stat_t
	err := unix.Lstat(path, &s)
	return fmt.Sprintln(err, s.Size, s.Mtim, s.Ctim, s.Dev, s.Ino)
}
