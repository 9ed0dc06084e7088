package data

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrors_sayWhere(t *testing.T) {
	for want, err := range map[string]error{
		"input: byte 7: unexpected EOF":                        &FormatError{Offset: 7, Err: io.ErrUnexpectedEOF},
		"a.csv: byte 0: unexpected EOF":                        &FormatError{Path: "a.csv", Err: io.ErrUnexpectedEOF},
		"header: unexpected EOF":                               &RowError{Err: io.ErrUnexpectedEOF},
		`a.csv: row 3 (line 5), column "mass": unexpected EOF`: &RowError{Path: "a.csv", Row: 3, Line: 5, Column: "mass", Err: io.ErrUnexpectedEOF},
	} {
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}
