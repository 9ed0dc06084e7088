package data

import (
	"bufio"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrLimit reports that a file holds more than its reader allows.
var ErrLimit = errors.New("over the limit")

var errShort = fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)

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

// An IDX file has two zero bytes, the element type, the number of axes, and big-endian lengths (32-bit) and elements.
const idxPreamble = 4

// ReadIDX reads one IDX array (the format of [MNIST]), plain or gzip-compressed, to the end of r. Elements are []uint8,
// []int8, []int16, []int32, []float32 or []float64, at most limit bytes and 2^34 elements. Invalid content is a
// [*FormatError]; an error of r is wrapped.
func ReadIDX(r io.Reader, limit int64) (Array, error) {
	a, err := readIDX(bufio.NewReader(r), limit, ErrLimit)
	if err != nil {
		return Array{}, fmt.Errorf("data: read idx: %w", err)
	}
	return a, nil
}

// OpenIDX is [ReadIDX] of a file, with a limit of about twice its size plus 60 MB: use ReadIDX for higher compression.
func OpenIDX(path string) (Array, error) {
	a, err := openIDX(path)
	if err != nil {
		return Array{}, fmt.Errorf("data: open idx: %w", err)
	}
	return a, nil
}

func openIDX(path string) (a Array, err error) {
	err = withFile(path, func(file *os.File, size int64) error {
		buffered := bufio.NewReader(file)
		limit, over := size, errShort
		if isGzip(buffered) {
			// Deflate expands at most by a factor of 1032.
			limit, over = min(2*limit+60<<20, 1032*limit), ErrLimit
		}
		a, err = readIDX(buffered, limit, over)
		return err
	})
	return a, err
}

func isGzip(r *bufio.Reader) bool {
	magic, _ := r.Peek(2)
	return len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b
}

func readIDX(r *bufio.Reader, limit int64, over error) (Array, error) {
	if !isGzip(r) {
		return readArray(r, limit, over)
	}
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return Array{}, readError(0, "in the gzip header", err)
	}
	return readArray(unpacked, limit, over)
}

func readArray(r io.Reader, limit int64, over error) (Array, error) {
	var preamble [idxPreamble]byte
	if n, err := io.ReadFull(r, preamble[:]); err != nil {
		return Array{}, readError(int64(n), "in the preamble", err)
	}
	if preamble[0] != 0 || preamble[1] != 0 {
		return Array{}, formatErrorf(0, "not an IDX file: it starts with % x, expected 00 00", preamble[:2])
	}
	axes := int(preamble[3])
	if axes == 0 {
		return Array{}, formatErrorf(3, "no axes, expected at least 1")
	}
	dims, err := readDims(r, axes)
	if err != nil {
		return Array{}, err
	}
	offset := int64(idxPreamble + 4*axes)
	body := body{r, dims, offset, limit, over}
	var flat any
	switch preamble[2] {
	case 0x08:
		flat, err = readElements[uint8](body, 1)
	case 0x09:
		flat, err = readElements[int8](body, 1)
	case 0x0B:
		flat, err = readElements[int16](body, 2)
	case 0x0C:
		flat, err = readElements[int32](body, 4)
	case 0x0D:
		flat, err = readElements[float32](body, 4)
	case 0x0E:
		flat, err = readElements[float64](body, 8)
	default:
		return Array{}, formatErrorf(2, "unknown type of elements 0x%02x, expected 0x08, 0x09 or 0x0b to 0x0e", preamble[2])
	}
	if err != nil {
		return Array{}, err
	}
	return Array{flat, dims}, nil
}

func readDims(r io.Reader, axes int) ([]int, error) {
	header := make([]byte, 4*axes)
	if n, err := io.ReadFull(r, header); err != nil {
		return nil, readError(int64(idxPreamble+n), "in the lengths of the axes", err)
	}
	dims := make([]int, axes)
	for i := range dims {
		d := binary.BigEndian.Uint32(header[4*i:])
		if d == 0 || d > 1<<31-1 {
			return nil, formatErrorf(int64(idxPreamble+4*i), "axis %d of %d has the length %d, expected 1 to 2147483647", i+1, axes, d)
		}
		dims[i] = int(d)
	}
	return dims, nil
}

type body struct {
	io.Reader
	dims   []int
	offset int64
	limit  int64
	over   error
}

func readElements[T element](b body, width int) ([]T, error) {
	size, ok := sized(b.dims...)
	if !ok || int64(size) > b.limit/int64(width) {
		return nil, formatErrorf(idxPreamble, "dims %v of %d-byte elements take more than %d bytes: %w", b.dims, width, b.limit, b.over)
	}
	flat := make([]T, size)
	buffer := make([]byte, min(size*width, 64<<10))
	for i := 0; i < size; {
		k := min(size-i, len(buffer)/width)
		chunk := buffer[:k*width]
		if n, err := io.ReadFull(b, chunk); err != nil {
			return nil, readError(b.offset+int64(i*width+n), fmt.Sprintf("in element %d of %d", i+n/width+1, size), err)
		}
		if _, err := binary.Decode(chunk, binary.BigEndian, flat[i:i+k]); err != nil {
			return nil, err
		}
		i += k
	}
	end := b.offset + int64(size)*int64(width)
	switch n, err := io.ReadFull(b, buffer[:1]); {
	case n > 0:
		return nil, formatErrorf(end, "more bytes follow the %d elements of dims %v", size, b.dims)
	case err != io.EOF: // such as a wrong gzip checksum
		return nil, readError(end, "after the elements", err)
	}
	return flat, nil
}

func formatErrorf(offset int64, format string, args ...any) error {
	return &FormatError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

func readError(offset int64, where string, err error) error {
	corrupt := flate.CorruptInputError(0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return formatErrorf(offset, "%s: %w", where, errShort)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return formatErrorf(offset, "unpack, %s: %w", where, err)
	}
	return fmt.Errorf("byte %d, %s: %w", offset, where, err)
}
