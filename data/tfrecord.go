package data

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/lazo-ml/lazo/internal/tfrecord"
)

// A record begins with its length and the length's checksum; see internal/tfrecord.
const (
	tfHeader      = 12
	tfRecordLimit = 16 << 20
)

// TFRecords yields the records of r, a plain or gzip-compressed TFRecord file. Each has its own memory, at most limit
// bytes; 0 means 16 MB. Checksums are verified. Invalid content is a [*FormatError] that ends the sequence. An error of
// r is wrapped.
func TFRecords(r io.Reader, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := eachTFRecord(r, limit, yield); err != nil {
			yield(nil, fmt.Errorf("data: tfrecords: %w", err))
		}
	}
}

// TFRecordFile is [TFRecords] of a file, which each iteration opens.
func TFRecordFile(path string, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := withFile(path, func(file *os.File, _ int64) error { return eachTFRecord(file, limit, yield) })
		if err != nil {
			yield(nil, fmt.Errorf("data: tfrecord file: %w", err))
		}
	}
}

func eachTFRecord(r io.Reader, limit int64, yield func([]byte, error) bool) error {
	limit = cmp.Or(limit, tfRecordLimit)
	if limit < 0 {
		return fmt.Errorf("the limit of a record is %d bytes, expected at least 1, or 0 for %d", limit, tfRecordLimit)
	}
	limit = min(limit, math.MaxInt64-tfHeader-4) // for a length plus its checksum
	b := bufio.NewReader(r)
	r = b
	// A length may begin with gzip's two magic bytes.
	if head, _ := b.Peek(tfHeader); isGzip(b) && (len(head) < tfHeader || !sumIs(head[:8], head[8:])) {
		u, err := gzip.NewReader(b)
		if err != nil {
			return readError(0, "in the gzip header", err)
		}
		r = u
	}
	offset := int64(0)
	for n := 1; ; n++ {
		data, err := readTFRecord(r, offset, limit, n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		offset += tfHeader + int64(len(data)) + 4
		if !yield(data, nil) {
			return nil
		}
	}
}

func sumIs(b, sum []byte) bool { return tfrecord.Sum(b) == binary.LittleEndian.Uint32(sum) }

// readTFRecord returns io.EOF if there is no record n.
func readTFRecord(r io.Reader, offset, limit int64, n int) ([]byte, error) {
	var head [tfHeader]byte
	switch k, err := io.ReadFull(r, head[:]); {
	case k == 0 && err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, readError(offset+int64(k), fmt.Sprintf("in the length of record %d", n), err)
	}
	if !sumIs(head[:8], head[8:]) {
		return nil, formatErrorf(offset+8, "record %d: wrong checksum of the length: the file is damaged, or not a TFRecord file", n)
	}
	length := binary.LittleEndian.Uint64(head[:])
	if length > uint64(limit) {
		return nil, formatErrorf(offset, "record %d has %d bytes, more than %d: %w", n, length, limit, ErrLimit)
	}
	var data bytes.Buffer
	data.Grow(int(min(length+4, 64<<10)))
	k, err := io.CopyN(&data, r, int64(length)+4)
	if err != nil {
		return nil, readError(offset+tfHeader+k, fmt.Sprintf("in record %d of %d bytes", n, length), err)
	}
	all := data.Bytes()
	if !sumIs(all[:length], all[length:]) {
		return nil, formatErrorf(offset+tfHeader+int64(length), "record %d: wrong checksum of its %d bytes: the file is damaged", n, length)
	}
	return all[:length:length], nil
}
