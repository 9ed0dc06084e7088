package data

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrLimit reports that a file or a source holds more than its reader allows.
var ErrLimit = errors.New("over the limit")

// FormatError is a malformed file.
type FormatError struct {
	// Path is the file, "" for an [io.Reader].
	Path string
	// Offset is the error's position in bytes of the decompressed file.
	Offset int64
	// Err wraps io.ErrUnexpectedEOF if the file is truncated, and [ErrLimit] if it is too large.
	Err error
}

func (e *FormatError) Error() string {
	path := cmp.Or(e.Path, "input")
	return fmt.Sprintf("%s: byte %d: %v", path, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }
