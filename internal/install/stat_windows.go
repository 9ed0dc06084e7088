package install

import (
	"fmt"
	"io/fs"
	"os"
)

const noFollow = 0

func inode(fs.FileInfo) uint64 { return 0 }

func stateOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
}
