package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Writer writes a file: the header, then the tensors one by one. After an error the file is incomplete, and further
// calls return it again. It does not buffer: for small pieces use a bufio.Writer.
type Writer struct {
	w     io.Writer
	parts []part
	next  int
	sum   Checksum
	err   error
	ended bool
}

type part struct {
	name   string
	length int64
}

// NewWriter writes the header for tensors that follow in the given order (see [Sort]), with metadata that may be nil.
// The output is deterministic. For sorted tensors and at most one metadata entry it equals that of the Python package
// 0.8. Content beyond the default [Limits] is an [ErrLimit].
func NewWriter(w io.Writer, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	header, parts, err := appendHeader(tensors, metadata)
	if err == nil {
		err = writeAll(w, header)
	}
	if err != nil {
		return nil, fmt.Errorf("safetensors: write header: %w", err)
	}
	return &Writer{w: w, parts: parts, sum: Checksum(0).Update(header)}, nil
}

// HeaderChecksum is [Reader.HeaderChecksum].
func (w *Writer) HeaderChecksum() Checksum { return w.sum }

// Write writes the bytes of the next tensor, with its name and length, row-major and little endian (see [Bytes]), and
// returns their checksum.
func (w *Writer) Write(name string, data []byte) (Checksum, error) {
	return w.write(name, func(tensor *partWriter) error {
		if int64(len(data)) != tensor.left {
			return fmt.Errorf("%d bytes, expected %d", len(data), tensor.left)
		}
		_, err := tensor.Write(data)
		return err
	})
}

// WriteFunc is [Writer.Write] for bytes in pieces: write must write exactly the tensor's length before it returns. Its
// error is wrapped.
func (w *Writer) WriteFunc(name string, write func(io.Writer) error) (Checksum, error) {
	return w.write(name, func(tensor *partWriter) error { return write(tensor) })
}

func (w *Writer) write(name string, write func(*partWriter) error) (Checksum, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.ended:
		return 0, fmt.Errorf("safetensors: write tensor %s: the writer is closed", listed.Quoted(name))
	}
	sum, err := w.writeNext(name, write)
	if err != nil {
		w.err = fmt.Errorf("safetensors: write tensor %s: %w", listed.Quoted(name), err)
		return 0, w.err
	}
	return sum, nil
}

func (w *Writer) writeNext(name string, write func(*partWriter) error) (Checksum, error) {
	if w.next == len(w.parts) {
		return 0, fmt.Errorf("all %d tensors of the header are written", len(w.parts))
	}
	part := w.parts[w.next]
	if name != part.name {
		return 0, fmt.Errorf("tensor %d of the header is %s, expected the order of the header", w.next, listed.Quoted(part.name))
	}
	// A panic or Goexit in write leaves half a tensor.
	w.err = fmt.Errorf("safetensors: write tensor %s: not ended", listed.Quoted(name))
	tensor := partWriter{w: w.w, left: part.length}
	err := write(&tensor)
	tensor.ended = true
	switch {
	case err != nil: // may wrap tensor.err
		return 0, err
	case tensor.err != nil:
		return 0, tensor.err
	case tensor.left != 0:
		return 0, fmt.Errorf("%d bytes, expected %d", part.length-tensor.left, part.length)
	}
	w.err = nil
	w.next++
	return tensor.sum, nil
}

// Close checks that all tensors were written; it does not close the destination. Repeated calls return the same.
func (w *Writer) Close() error {
	if w.err == nil && w.next < len(w.parts) {
		w.err = fmt.Errorf("safetensors: close: %d of %d tensors are written, next is %s", w.next, len(w.parts), listed.Quoted(w.parts[w.next].name))
	}
	w.ended = true
	return w.err
}

type partWriter struct {
	w     io.Writer
	left  int64
	sum   Checksum
	err   error
	ended bool
}

func (p *partWriter) Write(data []byte) (int, error) {
	if p.ended {
		return 0, errors.New("safetensors: write: the tensor has ended")
	}
	if p.err == nil && int64(len(data)) > p.left {
		p.err = fmt.Errorf("more bytes than the header says: %d more, expected %d", len(data), p.left)
	}
	done := 0
	for done < len(data) && p.err == nil {
		chunk := data[done:min(done+writeChunkSize, len(data))]
		p.sum = p.sum.Update(chunk)
		if p.err = writeAll(p.w, chunk); p.err == nil {
			done += len(chunk)
			p.left -= int64(len(chunk))
		}
	}
	return done, p.err
}

func writeAll(w io.Writer, data []byte) error {
	n, err := w.Write(data)
	if err == nil && n != len(data) {
		return io.ErrShortWrite
	}
	return err
}

func appendHeader(tensors []Tensor, metadata map[string]string) ([]byte, []part, error) {
	limits := Limits{}.withDefaults()
	if len(tensors) > limits.Tensors || len(metadata) > limits.Metadata {
		return nil, nil, fmt.Errorf("%d tensors and %d entries of metadata, expected at most %d and %d: %w",
			len(tensors), len(metadata), limits.Tensors, limits.Metadata, ErrLimit)
	}
	b := append(make([]byte, preamble), '{')
	if metadata != nil {
		b = append(b, `"`+metadataName+`":{`...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, nil, fmt.Errorf("metadata %s: not valid UTF-8", listed.Quoted(key))
			}
			b = appendString(appendComma(b, i > 0), key)
			b = appendString(append(b, ':'), metadata[key])
		}
		b = append(b, '}')
	}
	parts, end := make([]part, 0, len(tensors)), int64(0)
	names := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		length, err := checkTensor(t, limits)
		switch {
		case err != nil:
		case names[t.Name]:
			err = errors.New("a second one of this name")
		case end+length < end:
			err = fmt.Errorf("the total size overflows an integer: %w", ErrLimit)
		case int64(len(b)) > limits.Header:
			err = fmt.Errorf("the header takes more than %d bytes: %w", limits.Header, ErrLimit)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %s: %w", listed.Quoted(t.Name), err)
		}
		b = appendTensor(appendComma(b, len(b) > preamble+1), t, end, end+length)
		names[t.Name] = true
		parts = append(parts, part{t.Name, length})
		end += length
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if n := int64(len(b) - preamble); n > limits.Header {
		return nil, nil, fmt.Errorf("the header takes %d bytes, expected at most %d: %w", n, limits.Header, ErrLimit)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-preamble))
	return b, parts, nil
}

func checkTensor(t Tensor, limits Limits) (int64, error) {
	switch {
	case t.Name == metadataName:
		return 0, errors.New("this name is taken by the metadata")
	case !utf8.ValidString(t.Name):
		return 0, errors.New("the name is not valid UTF-8")
	case len(t.Name) > limits.Name:
		return 0, fmt.Errorf("a name of %d bytes, expected at most %d: %w", len(t.Name), limits.Name, ErrLimit)
	case len(t.Dims) > limits.Rank:
		return 0, fmt.Errorf("%d axes, expected at most %d: %w", len(t.Dims), limits.Rank, ErrLimit)
	}
	return t.byteSize()
}

func appendTensor(b []byte, t Tensor, begin, end int64) []byte {
	b = appendString(b, t.Name)
	b = append(b, `:{"dtype":"`+t.DType.String()+`","shape":[`...)
	for i, dim := range t.Dims {
		b = strconv.AppendInt(appendComma(b, i > 0), int64(dim), 10)
	}
	b = strconv.AppendInt(append(b, `],"data_offsets":[`...), begin, 10)
	b = strconv.AppendInt(append(b, ','), end, 10)
	return append(b, `]}`...)
}

func appendComma(b []byte, more bool) []byte {
	if more {
		return append(b, ',')
	}
	return b
}
