// Package packed opens files that may be gzip-compressed. Its errors have the position in the decompressed file.
package packed

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/regular"
)

var ErrShort = fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)

// File calls f with a regular file and its size. It adds the path to f's errors.
func File(path string, f func(file *os.File, size int64) error) error {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	err = f(file, info.Size())
	format, row := (*data.FormatError)(nil), (*data.RowError)(nil)
	switch {
	case errors.As(err, &format):
		format.Path = path
	case errors.As(err, &row):
		row.Path = path
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

func Reader(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if !IsGzip(b) {
		return b, nil
	}
	return Unpack(b)
}

func IsGzip(r *bufio.Reader) bool {
	magic, _ := r.Peek(2)
	return len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b
}

func Unpack(r io.Reader) (io.Reader, error) {
	u, err := gzip.NewReader(r)
	if err != nil {
		return nil, ReadError(0, "in the gzip header", err)
	}
	return u, nil
}

func Errorf(offset int64, format string, args ...any) error {
	return &data.FormatError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

func ReadError(offset int64, where string, err error) error {
	corrupt := flate.CorruptInputError(0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Errorf(offset, "%s: %w", where, ErrShort)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return Errorf(offset, "unpack, %s: %w", where, err)
	}
	return fmt.Errorf("byte %d, %s: %w", offset, where, err)
}
