package safetensors

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrLimit reports content that exceeds [Limits] or the range of integers.
var ErrLimit = errors.New("over the limit")

// ErrChecksum reports elements that differ from those written.
var ErrChecksum = errors.New("damaged: the checksum differs")

// FormatError is an invalid file.
type FormatError struct {
	// Offset is the error's position in bytes.
	Offset int64
	// Tensor is the invalid tensor's name; "" for other errors.
	Tensor string
	// Err wraps io.ErrUnexpectedEOF if the file is truncated, and [ErrLimit] if it is too large.
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
