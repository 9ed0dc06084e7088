package safetensors

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/listed"
)

// ErrLimit reports content that exceeds [Limits] or the range of integers.
var ErrLimit = errors.New("over the limit")

// ErrChecksum reports elements that differ from those written.
var ErrChecksum = errors.New("damaged: the checksum differs")

// FormatError is an invalid file.
type FormatError struct {
	// Offset is the error's position in bytes.
	Offset int64
	Tensor string
	// Err wraps io.ErrUnexpectedEOF if the file is truncated, and [ErrLimit] if it is too large.
	Err error
}

func (e *FormatError) Error() string {
	if e.Tensor != "" {
		return fmt.Sprintf("byte %d: tensor %s: %v", e.Offset, listed.Quoted(e.Tensor), e.Err)
	}
	return fmt.Sprintf("byte %d: %v", e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }
