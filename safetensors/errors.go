package safetensors

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrLimit: a file, or what is to be written, goes beyond [Limits] or beyond what can be counted.
var ErrLimit = errors.New("over the limit")

// ErrNotFound: a file has no tensor of that name.
var ErrNotFound = errors.New("no such tensor")

// ErrChecksum: the elements of a file are not those that it was written with.
var ErrChecksum = errors.New("damaged: the checksum differs")

// FormatError is a file that is not what the format says.
type FormatError struct {
	// Offset is where it went wrong, in bytes from the start of the file.
	Offset int64
	// Tensor is the name of the tensor that is wrong; "" if it is something else, or has the name "".
	Tensor string
	// Err is what is wrong. It wraps io.ErrUnexpectedEOF where the file ends too early, and [ErrLimit] where it is too
	// large.
	Err error
}

func (e *FormatError) Error() string {
	if e.Tensor != "" {
		return fmt.Sprintf("byte %d: tensor %s: %v", e.Offset, quoted(e.Tensor), e.Err)
	}
	return fmt.Sprintf("byte %d: %v", e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// quoted makes text from a file fit for a message: nothing that a terminal obeys, and not too long.
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
