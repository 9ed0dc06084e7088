package loop

import (
	"errors"
	"io/fs"
	"os"
)

var errIrregular = errors.New("is no regular file")

// openRegular is [os.OpenFile] for regular files alone. What is there is asked before it is opened: opening a named pipe waits
// for its other end, reading one for a line that nobody writes, and neither heeds a context.
func openRegular(path string, how int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	return os.OpenFile(path, how, mode) // also says why Stat failed
}
