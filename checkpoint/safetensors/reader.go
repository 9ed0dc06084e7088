package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Reads are still in the cache when they are summed; files prefer fewer, larger writes.
const (
	chunkSize      = 256 << 10
	writeChunkSize = 1 << 20
)

// Reader reads a file's tensors. It is safe for concurrent use if its source allows it.
type Reader struct {
	source io.ReaderAt
	base   int64
	sum    Checksum
	header
}

// NewReader reads and validates a file's header: its JSON, the limits, and that the tensors fill the size bytes
// without overlap or gap. For headers of up to 100 MB it needs at most 64 MB plus twice the header's size. An invalid
// file is a [*FormatError].
func NewReader(source io.ReaderAt, size int64, limits Limits) (*Reader, error) {
	r, err := newReader(source, size, limits.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("safetensors: read header: %w", err)
	}
	return r, nil
}

func newReader(source io.ReaderAt, size int64, limits Limits) (*Reader, error) {
	var length [preamble]byte
	r := &Reader{source: source}
	if size < preamble {
		begin := length[:max(size, 0)]
		if err := r.readAt(begin, 0, ""); err != nil {
			return nil, err
		}
		return nil, &FormatError{max(size, 0), "", cmp.Or(foreign(begin), fmt.Errorf("the length of the header takes %d bytes, and the file has %d: %w", preamble, max(size, 0), errShort))}
	}
	if err := r.readAt(length[:], 0, ""); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > uint64(size-preamble):
		return nil, &FormatError{0, "", cmp.Or(foreign(length[:]), fmt.Errorf("a header of %d bytes does not fit into a file of %d: it begins with %q: it is truncated, or not a safetensors file: %w", n, size, length[:], errShort))}
	case n > uint64(limits.Header):
		return nil, &FormatError{0, "", cmp.Or(foreign(length[:]), fmt.Errorf("a header of %d bytes, expected at most %d: %w", n, limits.Header, ErrLimit))}
	}
	r.base = preamble + int64(n)
	r.sum = r.sum.Update(length[:])
	var text strings.Builder
	text.Grow(int(n))
	if err := r.each(preamble, int64(n), "", func(chunk []byte) error {
		r.sum = r.sum.Update(chunk)
		text.Write(chunk)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := foreign(length[:]); err != nil && !strings.HasPrefix(text.String(), "{") {
		return nil, &FormatError{0, "", err}
	}
	var err error
	r.header, err = parseHeader(text.String(), size-r.base, limits)
	return r, err
}

// Users take these files for safetensors.
var formats = []struct{ begin, kind, advice string }{
	{"<", "a page of HTML or XML", "download it again, from the address of the file itself"},
	{"version ", "a pointer of Git LFS", "run git lfs pull, or download the file itself"},
	{"PK\x03\x04", "a zip archive, as PyTorch and Keras write", "save the tensors again by the Python package safetensors"},
	{"\x80\x02", "a Python pickle", "save the tensors again by the Python package safetensors"},
	{"\x80\x03", "a Python pickle", "save the tensors again by the Python package safetensors"},
	{"\x80\x04", "a Python pickle", "save the tensors again by the Python package safetensors"},
	{"\x80\x05", "a Python pickle", "save the tensors again by the Python package safetensors"},
	{"\x89HDF", "an HDF5 file, as Keras writes", "save the tensors again by the Python package safetensors"},
	{"\x93NUMPY", "an array of NumPy", "save the tensors again by the Python package safetensors"},
	{"GGUF", "a GGUF file", "take the model's safetensors file"},
	{"\x1f\x8b", "a gzip archive", "unpack it"},
	{"\x89PNG", "a PNG image", "give the path of the model's file"},
	{"\xff\xd8\xff", "a JPEG image", "give the path of the model's file"},
	{"{", "JSON", "give the path of the model's file"},
}

func foreign(begin []byte) error {
	for _, f := range formats {
		if strings.HasPrefix(strings.TrimLeft(string(begin), " \r\n\ufeff"), f.begin) {
			return fmt.Errorf("it begins with %q: it is %s, expected a safetensors file: %s", begin, f.kind, f.advice)
		}
	}
	return nil
}

// HeaderChecksum returns the CRC-32C of the header and its length prefix, which no other checksum covers.
func (r *Reader) HeaderChecksum() Checksum { return r.sum }

// Verify reads all elements and returns [ErrChecksum] if their checksum differs from the metadata's [ChecksumKey].
// Without one it returns nil at once.
func (r *Reader) Verify() error {
	want, found := r.metadata[ChecksumKey]
	if !found {
		return nil
	}
	sum, length := Checksum(0), int64(0)
	for i := range r.entries {
		length += r.entries[i].length // without gaps
	}
	err := r.each(r.base, length, "", func(chunk []byte) error {
		sum = sum.Update(chunk)
		return nil
	})
	if err != nil {
		return fmt.Errorf("safetensors: verify: %w", err)
	}
	if sum.String() != want {
		return fmt.Errorf("safetensors: %w: the elements have %v, the metadata says %s (a program that changes elements must leave out %q)",
			ErrChecksum, sum, listed.Quoted(want), ChecksumKey)
	}
	return nil
}

// Metadata returns a copy of the file's metadata, or nil.
func (r *Reader) Metadata() map[string]string { return maps.Clone(r.metadata) }

func (r *Reader) Len() int { return len(r.entries) }

// Tensors yields the tensors in the order of their bytes, the fastest to read.
func (r *Reader) Tensors() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for i := range r.entries {
			if !yield(r.entries[i].tensor()) {
				return
			}
		}
	}
}

// Tensor returns the named tensor.
func (r *Reader) Tensor(name string) (Tensor, bool) {
	e, found := r.find(name)
	if !found {
		return Tensor{}, false
	}
	return e.tensor(), true
}

// Read returns a tensor's bytes, row-major and little endian (see [Values]), and their checksum. A truncated file is a
// [*FormatError].
func (r *Reader) Read(name string) ([]byte, Checksum, error) {
	e, err := r.named(name)
	if err != nil {
		return nil, 0, err
	}
	data, err := newBytes(e, e.length)
	if err != nil {
		return nil, 0, err
	}
	sum, err := r.fill(data, e)
	if err != nil {
		return nil, 0, err
	}
	return data, sum, nil
}

// ReadInto is [Reader.Read] into data of the tensor's length. On an error its content is undefined.
func (r *Reader) ReadInto(name string, data []byte) (Checksum, error) {
	e, err := r.named(name)
	if err != nil {
		return 0, err
	}
	if int64(len(data)) != e.length {
		return 0, fmt.Errorf("safetensors: read tensor %s: %d bytes to read into, expected %d", listed.Quoted(name), len(data), e.length)
	}
	return r.fill(data, e)
}

// ReadRows returns the bytes of rows from to to-1, without a checksum. Errors are as in [Reader.Read], also for a
// scalar, and for rows that are not whole bytes.
func (r *Reader) ReadRows(name string, from, to int) ([]byte, error) {
	e, err := r.named(name)
	if err != nil {
		return nil, err
	}
	row, err := e.row(from, to)
	if err != nil {
		return nil, fmt.Errorf("safetensors: read rows %d to %d of tensor %s: %w", from, to, listed.Quoted(name), err)
	}
	data, err := newBytes(e, int64(to-from)*row)
	if err != nil {
		return nil, err
	}
	if err := r.readAt(data, r.base+e.begin+int64(from)*row, name); err != nil {
		return nil, fmt.Errorf("safetensors: read rows: %w", err)
	}
	return data, nil
}

func (e *entry) row(from, to int) (int64, error) {
	dims := e.tensor().Dims
	if len(dims) == 0 {
		return 0, errors.New("a scalar has none")
	}
	rows := dims[0]
	if from < 0 || to < from || to > rows {
		return 0, fmt.Errorf("expected 0 ≤ from ≤ to ≤ %d", rows)
	}
	if rows == 0 {
		return 0, nil
	}
	if e.length%int64(rows) != 0 {
		return 0, fmt.Errorf("a row of dims %v of %v is not a whole number of bytes", dims, e.dtype)
	}
	return e.length / int64(rows), nil
}

// Copy writes a tensor's bytes to w in pieces and returns their checksum. Errors are as in [Reader.Read]; those of w
// are wrapped.
func (r *Reader) Copy(w io.Writer, name string) (Checksum, error) {
	e, err := r.named(name)
	if err != nil {
		return 0, err
	}
	sum := Checksum(0)
	err = r.each(r.base+e.begin, e.length, name, func(chunk []byte) error {
		sum = sum.Update(chunk)
		n, err := w.Write(chunk)
		if err == nil && n != len(chunk) {
			err = io.ErrShortWrite
		}
		if err != nil {
			err = fmt.Errorf("write tensor %s: %w", listed.Quoted(name), err)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("safetensors: copy: %w", err)
	}
	return sum, nil
}

func (r *Reader) named(name string) (*entry, error) {
	e, found := r.find(name)
	if !found {
		return nil, fmt.Errorf("safetensors: no such tensor: %s among the %d of the file", listed.Quoted(name), r.Len())
	}
	return e, nil
}

func newBytes(e *entry, length int64) ([]byte, error) {
	if int64(int(length)) != length {
		return nil, fmt.Errorf("safetensors: tensor %s: %d bytes do not fit into memory: %w", listed.Quoted(e.name), length, ErrLimit)
	}
	return make([]byte, length), nil
}

func (r *Reader) fill(data []byte, e *entry) (Checksum, error) {
	sum := Checksum(0)
	for at := 0; at < len(data); {
		chunk := data[at:min(at+chunkSize, len(data))]
		if err := r.readAt(chunk, r.base+e.begin+int64(at), e.name); err != nil {
			return 0, fmt.Errorf("safetensors: read: %w", err)
		}
		sum = sum.Update(chunk)
		at += len(chunk)
	}
	return sum, nil
}

func (r *Reader) each(offset, length int64, name string, use func(chunk []byte) error) error {
	buffer := make([]byte, min(length, chunkSize))
	for done := int64(0); done < length; {
		chunk := buffer[:min(length-done, chunkSize)]
		if err := r.readAt(chunk, offset+done, name); err != nil {
			return err
		}
		if err := use(chunk); err != nil {
			return err
		}
		done += int64(len(chunk))
	}
	return nil
}

func (r *Reader) readAt(data []byte, offset int64, name string) error {
	n, err := r.source.ReadAt(data, offset)
	switch {
	case n == len(data):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &FormatError{offset + int64(max(n, 0)), name, fmt.Errorf("%d of %d bytes: %w", n, len(data), errShort)}
	}
	if name != "" {
		err = fmt.Errorf("tensor %s: %w", listed.Quoted(name), err)
	}
	return fmt.Errorf("byte %d: %w", offset, err)
}
