package records

import (
	"errors"
	"io/fs"
	"os"
)

// Rotated reports whether path has no file, another than the opened one, or one of less than end bytes. Writing shows
// other errors of the path.
func Rotated(path string, opened fs.FileInfo, end int64) bool {
	now, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return !os.SameFile(now, opened) || now.Size() < end
}
