package data

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrLimit reports that a file or a source exceeds its reader's limit.
var ErrLimit = errors.New("over the limit")

// FormatError is a malformed file.
type FormatError struct {
	// Path is the file, "" for an [io.Reader].
	Path string
	// Offset is the error's byte in the decompressed file.
	Offset int64
	// Err wraps io.ErrUnexpectedEOF if the file is truncated, and [ErrLimit] if it is too large.
	Err error
}

func (e *FormatError) Error() string {
	path := cmp.Or(e.Path, "input")
	return fmt.Sprintf("%s: byte %d: %v", path, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// RowError is a row of a table, or a value in it, that cannot be read.
type RowError struct {
	// Path is the file, "" for an [io.Reader].
	Path string
	// Row is from 1; 0 is the header.
	Row int
	// Line is from 1, or 0. Column is a name, or "" for the whole row.
	Line   int
	Column string
	Err    error
}

func (e *RowError) Error() string {
	where := "header"
	if e.Row > 0 {
		where = fmt.Sprintf("row %d", e.Row)
	}
	if e.Path != "" {
		where = e.Path + ": " + where
	}
	if e.Line > 0 {
		where += fmt.Sprintf(" (line %d)", e.Line)
	}
	if e.Column != "" {
		where += fmt.Sprintf(", column %q", e.Column)
	}
	return fmt.Sprintf("%s: %v", where, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }
