package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
	"github.com/lazo-ml/lazo/internal/tfrecord"
)

// record frames data as TensorFlow does.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, tfrecord.Sum(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, tfrecord.Sum(data))
}

func header(length uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, length)
	return binary.LittleEndian.AppendUint32(b, tfrecord.Sum(b))
}

func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// feature is an entry of an example's map; kind is 1 for bytes, 2 for floats, 3 for integers.
func feature(name string, kind protowire.Number, list []byte) []byte {
	return field(1, append(field(1, []byte(name)), field(2, field(kind, list))...))
}

func example(features ...[]byte) []byte { return field(1, bytes.Join(features, nil)) }

func records(s func(func([]byte, error) bool)) (all [][]byte, err error) {
	for r, err := range s {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

func TestTFRecords_law(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 0, 5).Draw(t, "records")
		var file []byte
		for _, r := range want {
			file = append(file, record(r)...)
		}
		for kind, file := range map[string][]byte{"plain": file, "packed": datatest.Gzip(t, file)} {
			got, err := records(ReadTFRecords(iotest.OneByteReader(bytes.NewReader(file)), 0))
			require.NoError(t, err, kind)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
			path := filepath.Join(dir, kind)
			require.NoError(t, os.WriteFile(path, file, 0o600))
			for range 2 {
				got, err = records(StreamTFRecords(path, 300))
				require.NoError(t, err, kind)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
			}
		}
	})
}

func TestTFRecordWhoseLengthLooksLikeGzip(t *testing.T) {
	want := make([]byte, 0x8b1f)
	got, err := records(ReadTFRecords(bytes.NewReader(record(want)), 0))
	require.NoError(t, err)
	require.Equal(t, [][]byte{want}, got)
}

var malformedTFRecord = []struct {
	name   string
	file   []byte
	offset int64
	want   string
	is     error
}{
	{"text", []byte("<html>not found</html>"), 8, "record 1: wrong checksum of the length", nil},
	{"cut in the length", record([]byte("abc"))[:7], 7, "in the length of record 1: the file ends too early", io.ErrUnexpectedEOF},
	{"cut in the data", record([]byte("abc"))[:14], 14, "in record 1 of 3 bytes: the file ends too early", io.ErrUnexpectedEOF},
	{"cut in the checksum", record([]byte("abc"))[:18], 18, "in record 1 of 3 bytes", io.ErrUnexpectedEOF},
	{"damaged data", bytes.Replace(record([]byte("abc")), []byte("b"), []byte("d"), 1), 15, "record 1: wrong checksum of its 3 bytes", nil},
	{"the second is damaged", append(record([]byte("abc")), 1, 2), 21, "in the length of record 2", io.ErrUnexpectedEOF},
	{"huge length", header(1 << 40), 0, "record 1 has 1099511627776 bytes, more than 16777216", data.ErrLimit},
	{"length of all ones", header(math.MaxUint64), 0, "more than", data.ErrLimit},
	{"length that overflows", header(math.MaxUint64 - 3), 0, "more than", data.ErrLimit},
	{"length that is not there", header(16 << 20), 12, "in record 1 of 16777216 bytes", io.ErrUnexpectedEOF},
}

func TestF28_MalformedTFRecord(t *testing.T) {
	dir := t.TempDir()
	worst, files := 0.0, 0
	for _, m := range malformedTFRecord {
		for kind, file := range map[string][]byte{"plain": m.file, "packed": datatest.Gzip(t, m.file)} {
			path := filepath.Join(dir, fmt.Sprint(files))
			files++
			require.NoError(t, os.WriteFile(path, file, 0o600))
			var err error
			took := datatest.Allocated(func() { _, err = records(StreamTFRecords(path, 0)) })
			requireFormatError(t, err, kind+" "+m.name, path, m.offset, m.want, m.is)
			worst = max(worst, float64(took)/float64(2*len(file)+64<<20))
		}
	}
	bomb := datatest.Gzip(t, record(make([]byte, 15<<20)))
	path := filepath.Join(dir, "bomb")
	require.NoError(t, os.WriteFile(path, bomb, 0o600))
	took := datatest.Allocated(func() {
		_, err := records(StreamTFRecords(path, 1<<20))
		require.ErrorIs(t, err, data.ErrLimit)
	})
	worst = max(worst, float64(took)/float64(2*len(bomb)+64<<20))
	took = datatest.Allocated(func() {
		_, err := records(StreamTFRecords(path, 0))
		require.NoError(t, err)
	})
	worst = max(worst, float64(took)/float64(2*len(bomb)+64<<20))
	require.Less(t, worst, 1.0)

	good := append(record([]byte("some data")), record([]byte{1})...)
	flips := 0
	for i := range good {
		for bit := range 8 {
			damaged := bytes.Clone(good)
			damaged[i] ^= 1 << bit
			_, err := records(ReadTFRecords(bytes.NewReader(damaged), 0))
			var format *data.FormatError
			require.ErrorAs(t, err, &format)
			flips++
		}
	}
	t.Logf("F28: %d malformed TFRecord files and %d bits flipped: a typed error each, 0 process deaths, at most %.0f %% of the memory allowed (2 x file + 64 MB)", files+1, flips, 100*worst)
}

func TestTFRecordsPassErrorsOn(t *testing.T) {
	broken := errors.New("disk on fire")
	file := record([]byte("abc"))
	for at := range len(file) {
		_, err := records(ReadTFRecords(io.MultiReader(bytes.NewReader(file[:at]), iotest.ErrReader(broken)), 0))
		require.ErrorIs(t, err, broken, "at %d", at)
	}
	_, err := records(ReadTFRecords(bytes.NewReader(file), -1))
	require.ErrorContains(t, err, "the limit of a record is -1 bytes")
}

func TestTFRecordFileToBatches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.tfrecord.gz")
	var file []byte
	for i := range byte(5) {
		file = append(file, record(example(
			feature("image", 1, field(1, []byte{i, i + 1, i + 2, i + 3})), feature("label", 3, field(1, []byte{i % 2}))))...)
	}
	require.NoError(t, os.WriteFile(path, datatest.Gzip(t, file), 0o600))
	parse := func(record []byte) (data.Batch, error) {
		e, err := ParseTFExample(record)
		if err != nil {
			return data.Batch{}, err
		}
		x, err := e.Field("image", 2, 2, 1)
		if err != nil {
			return data.Batch{}, err
		}
		y, err := e.Field("label")
		return data.Batch{Fields: []data.Field{x, y}, Size: 1}, err
	}
	var got []data.Batch
	for b, err := range data.Rebatch(data.ParallelMap(StreamTFRecords(path, 0), 2, parse), 2, data.Kept) {
		require.NoError(t, err)
		got = append(got, b)
	}
	require.Len(t, got, 3)
	require.Equal(t, []data.Field{data.Named("image", []uint8{2, 3, 4, 5, 3, 4, 5, 6}, 2, 2, 2, 1), data.Named("label", []int64{0, 1}, 2)}, got[1].Fields)
	require.Equal(t, []int{0, 2, 4}, []int{got[0].At, got[1].At, got[2].At})
}

func FuzzTFRecords(f *testing.F) {
	for _, m := range malformedTFRecord {
		f.Add(m.file)
		f.Add(datatest.Gzip(f, m.file))
	}
	f.Add(append(record([]byte("abc")), record(nil)...))
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := records(ReadTFRecords(bytes.NewReader(file), 1<<16))
		for _, r := range all {
			require.LessOrEqual(t, len(r), 1<<16)
		}
		if err != nil {
			var format *data.FormatError
			require.ErrorAs(t, err, &format)
		}
	})
}
