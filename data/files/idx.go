package files

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/packed"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// An IDX file has two zero bytes, the element type, the number of axes, and big-endian lengths (32-bit) and elements.
const idxPreamble = 4

// ReadIDX reads one IDX array (the format of [MNIST]) to the end of r. Elements are []uint8, []int8, []int16,
// []int32, []float32 or []float64, at most limit bytes and 2^34 elements. Invalid content is a [*data.FormatError].
func ReadIDX(r io.Reader, limit int64) (data.Array, error) {
	a, err := readIDX(bufio.NewReader(r), limit, data.ErrLimit)
	if err != nil {
		return data.Array{}, fmt.Errorf("files: read idx: %w", err)
	}
	return a, nil
}

// OpenIDX is [ReadIDX] of a file, with a limit of about twice its size plus 60 MB; higher compression needs ReadIDX.
func OpenIDX(path string) (data.Array, error) {
	a, err := openIDX(path)
	if err != nil {
		return data.Array{}, fmt.Errorf("files: open idx: %w", err)
	}
	return a, nil
}

func openIDX(path string) (a data.Array, err error) {
	err = packed.File(path, func(file *os.File, size int64) error {
		buffered := bufio.NewReader(file)
		limit, over := size, packed.ErrShort
		if packed.IsGzip(buffered) {
			// Deflate expands at most by a factor of 1032.
			limit, over = min(2*limit+60<<20, 1032*limit), data.ErrLimit
		}
		a, err = readIDX(buffered, limit, over)
		return err
	})
	return a, err
}

func readIDX(r *bufio.Reader, limit int64, over error) (data.Array, error) {
	if !packed.IsGzip(r) {
		return readArray(r, limit, over)
	}
	unpacked, err := packed.Unpack(r)
	if err != nil {
		return data.Array{}, err
	}
	return readArray(unpacked, limit, over)
}

func readArray(r io.Reader, limit int64, over error) (data.Array, error) {
	var preamble [idxPreamble]byte
	if n, err := io.ReadFull(r, preamble[:]); err != nil {
		return data.Array{}, packed.ReadError(int64(n), "in the preamble", err)
	}
	if preamble[0] != 0 || preamble[1] != 0 {
		return data.Array{}, packed.Errorf(0, "not an IDX file: it starts with % x, expected 00 00", preamble[:2])
	}
	axes := int(preamble[3])
	if axes == 0 {
		return data.Array{}, packed.Errorf(3, "no axes, expected at least 1")
	}
	dims, err := readDims(r, axes)
	if err != nil {
		return data.Array{}, err
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
		return data.Array{}, packed.Errorf(2, "unknown type of elements 0x%02x, expected 0x08, 0x09 or 0x0b to 0x0e", preamble[2])
	}
	if err != nil {
		return data.Array{}, err
	}
	return data.Array{Flat: flat, Dims: dims}, nil
}

func readDims(r io.Reader, axes int) ([]int, error) {
	header := make([]byte, 4*axes)
	if n, err := io.ReadFull(r, header); err != nil {
		return nil, packed.ReadError(int64(idxPreamble+n), "in the lengths of the axes", err)
	}
	dims := make([]int, axes)
	for i := range dims {
		d := binary.BigEndian.Uint32(header[4*i:])
		if d == 0 || d > 1<<31-1 {
			return nil, packed.Errorf(int64(idxPreamble+4*i), "axis %d of %d has the length %d, expected 1 to 2147483647", i+1, axes, d)
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

func readElements[T arrays.Element](b body, width int) ([]T, error) {
	size, ok := arrays.Size(b.dims...)
	if !ok || int64(size) > b.limit/int64(width) {
		return nil, packed.Errorf(idxPreamble, "dims %v of %d-byte elements take more than %d bytes: %w", b.dims, width, b.limit, b.over)
	}
	flat := make([]T, size)
	buffer := make([]byte, min(size*width, 64<<10))
	for i := 0; i < size; {
		k := min(size-i, len(buffer)/width)
		chunk := buffer[:k*width]
		if n, err := io.ReadFull(b, chunk); err != nil {
			return nil, packed.ReadError(b.offset+int64(i*width+n), fmt.Sprintf("in element %d of %d", i+n/width+1, size), err)
		}
		if _, err := binary.Decode(chunk, binary.BigEndian, flat[i:i+k]); err != nil {
			return nil, err
		}
		i += k
	}
	end := b.offset + int64(size)*int64(width)
	switch n, err := io.ReadFull(b, buffer[:1]); {
	case n > 0:
		return nil, packed.Errorf(end, "more bytes follow the %d elements of dims %v", size, b.dims)
	case err != io.EOF: // like a wrong gzip checksum
		return nil, packed.ReadError(end, "after the elements", err)
	}
	return flat, nil
}
