package data

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/internal/regular"
)

func withFile(path string, f func(file *os.File, size int64) error) error {
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
	format, row := (*FormatError)(nil), (*RowError)(nil)
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

func unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if !isGzip(b) {
		return b, nil
	}
	u, err := gzip.NewReader(b)
	if err != nil {
		return nil, readError(0, "in the gzip header", err)
	}
	return u, nil
}
