package safetensors

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrLimit reports a file or content to write that exceeds [Limits] or the range of integers.
var ErrLimit = errors.New("over the limit")

// ErrNotFound reports that a file has no tensor of that name.
var ErrNotFound = errors.New("no such tensor")

// ErrChecksum reports elements that differ from those originally written.
var ErrChecksum = errors.New("damaged: the checksum differs")

// FormatError is an invalid file.
type FormatError struct {
	// Offset is the position of the error in bytes.
	Offset int64
	// Tensor is the name of the invalid tensor; "" for other errors, or if the name is "".
	Tensor string
	// Err is the cause. It wraps io.ErrUnexpectedEOF if the file is truncated, and [ErrLimit] if it is too large.
	Err error
}

func (e *FormatError) Error() string {
	if e.Tensor != "" {
		return fmt.Sprintf("byte %d: tensor %s: %v", e.Offset, quoted(e.Tensor), e.Err)
	}
	return fmt.Sprintf("byte %d: %v", e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// quoted shortens text from a file and escapes terminal controls.
func quoted(text string) string {
	const limit = 100
	if len(text) <= limit {
		return strconv.QuoteToASCII(text)
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) && cut > limit-utf8.UTFMax {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.QuoteToASCII(text[:cut]), len(text))
}
