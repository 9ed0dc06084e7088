package files

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/packed"
	"github.com/lazo-ml/lazo/internal/tfrecord"
)

// A record begins with its length and the length's checksum; see internal/tfrecord.
const (
	tfHeader      = 12
	tfRecordLimit = 16 << 20
)

// ReadTFRecords yields the records of r, a TFRecord file. Each has its own memory, at most limit bytes; 0 means 16 MB.
// Invalid content, like a wrong checksum, is a [*data.FormatError] that ends the sequence.
func ReadTFRecords(r io.Reader, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := eachTFRecord(r, limit, yield); err != nil {
			yield(nil, fmt.Errorf("files: read tfrecords: %w", err))
		}
	}
}

// StreamTFRecords is [ReadTFRecords] of a file, which each iteration opens.
func StreamTFRecords(path string, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := packed.File(path, func(file *os.File, _ int64) error { return eachTFRecord(file, limit, yield) })
		if err != nil {
			yield(nil, fmt.Errorf("files: stream tfrecords: %w", err))
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
	if head, _ := b.Peek(tfHeader); packed.IsGzip(b) && (len(head) < tfHeader || !sumIs(head[:8], head[8:])) {
		u, err := packed.Unpack(b)
		if err != nil {
			return err
		}
		r = u
	}
	offset := int64(0)
	for n := 1; ; n++ {
		record, err := readTFRecord(r, offset, limit, n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		offset += tfHeader + int64(len(record)) + 4
		if !yield(record, nil) {
			return nil
		}
	}
}

func sumIs(b, sum []byte) bool { return tfrecord.Sum(b) == binary.LittleEndian.Uint32(sum) }

func readTFRecord(r io.Reader, offset, limit int64, n int) ([]byte, error) {
	var head [tfHeader]byte
	switch k, err := io.ReadFull(r, head[:]); {
	case k == 0 && err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, packed.ReadError(offset+int64(k), fmt.Sprintf("in the length of record %d", n), err)
	}
	if !sumIs(head[:8], head[8:]) {
		return nil, packed.Errorf(offset+8, "record %d: wrong checksum of the length: the file is damaged, or not a TFRecord file", n)
	}
	length := binary.LittleEndian.Uint64(head[:])
	if length > uint64(limit) {
		return nil, packed.Errorf(offset, "record %d has %d bytes, more than %d: %w", n, length, limit, data.ErrLimit)
	}
	var record bytes.Buffer
	record.Grow(int(min(length+4, 64<<10)))
	k, err := io.CopyN(&record, r, int64(length)+4)
	if err != nil {
		return nil, packed.ReadError(offset+tfHeader+k, fmt.Sprintf("in record %d of %d bytes", n, length), err)
	}
	all := record.Bytes()
	if !sumIs(all[:length], all[length:]) {
		return nil, packed.Errorf(offset+tfHeader+int64(length), "record %d: wrong checksum of its %d bytes: the file is damaged", n, length)
	}
	return all[:length:length], nil
}
