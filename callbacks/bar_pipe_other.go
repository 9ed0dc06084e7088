//go:build !unix

package callbacks

import (
	"io"
	"os"
)

// quietPipe is the file: on other systems writing to a broken pipe is an error like others.
func quietPipe(f *os.File) io.Writer { return f }
