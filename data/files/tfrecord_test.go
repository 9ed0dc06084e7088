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

// The checksum of the standard's own test vector (RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 8a9136aa), masked
// by hand; and a record as TensorFlow's documentation frames it.
func TestMaskedCRC(t *testing.T) {
	crc := uint32(0x8a9136aa)
	require.Equal(t, (crc>>15|crc<<17)+0xa282ead8, tfrecord.Sum(make([]byte, 32)))
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

func TestParseTFExample(t *testing.T) {
	floats := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)), math.Float32bits(-2))
	single := binary.LittleEndian.AppendUint32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), math.Float32bits(3))
	minus := int64(-7)
	ints := protowire.AppendVarint(protowire.AppendVarint(nil, 300), uint64(minus))
	lone := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 5)
	e, err := ParseTFExample(append(example(
		feature("floats", 2, append(field(1, floats), single...)),
		feature("ints", 3, append(lone, field(1, ints)...)),
		feature("bytes", 1, append(field(1, []byte("ab")), field(1, nil)...)),
		feature("pixels", 1, field(1, []byte{1, 2, 3, 4})),
		feature("none", 2, nil),
		feature("twice", 3, lone), feature("twice", 2, single),
	), protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1)...))
	require.NoError(t, err)
	require.Equal(t, TFExample{
		"floats": []float32{1.5, -2, 3}, "ints": []int64{5, 300, -7}, "bytes": [][]byte{[]byte("ab"), {}},
		"pixels": [][]byte{{1, 2, 3, 4}}, "none": []float32{}, "twice": []float32{3},
	}, e)

	f, err := e.Field("pixels", 2, 2)
	require.NoError(t, err)
	require.Equal(t, data.Named("pixels", []uint8{1, 2, 3, 4}, 1, 2, 2), f)
	f, err = e.Field("ints", 3)
	require.NoError(t, err)
	require.Equal(t, data.Named("ints", []int64{5, 300, -7}, 1, 3), f)
	_, err = e.Field("bytes")
	require.EqualError(t, err, `files: the feature "bytes" has 2 values of bytes, expected one`)
	_, err = e.Field("floats", 2)
	require.EqualError(t, err, `files: the feature "floats": dims [1 2] mean 2 elements, but Flat has 3`)
	_, err = e.Field("label")
	require.EqualError(t, err, `files: the example has no feature "label"; there are ["bytes" "floats" "ints" "none" "pixels" "twice"]`)
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

func TestF28_MalformedTFExample(t *testing.T) {
	many := bytes.Repeat(feature("", 3, nil), tfFeatures+1)
	zeros := make([]byte, 20<<20) // each is a number of eight bytes
	cases := map[string]struct {
		record []byte
		want   string
		is     error
	}{
		"cut":              {example(feature("a", 3, field(1, []byte{1})))[:5], "not a tf.train.Example: field 1: unexpected EOF", errNoExample},
		"text":             {[]byte("<html>"), "not a tf.train.Example", errNoExample},
		"a wrong tag":      {[]byte{0}, "not a tf.train.Example", errNoExample},
		"floats of 3":      {example(feature("a", 2, field(1, []byte{1, 2, 3}))), `feature "a": not a tf.train.Example: a packed number: unexpected EOF`, errNoExample},
		"an open varint":   {example(feature("a", 3, field(1, []byte{0x80}))), `feature "a": not a tf.train.Example: a packed number`, errNoExample},
		"a long varint":    {example(feature("a", 3, field(1, bytes.Repeat([]byte{0xff}, 11)))), "variable length integer overflow", errNoExample},
		"groups in groups": {bytes.Repeat([]byte{0x0b}, 1<<20), "not a tf.train.Example", errNoExample},
		"many features":    {example(many), "more than 10000 features", data.ErrLimit},
		"many numbers":     {example(feature("a", 3, field(1, zeros))), "the values take more than 8388608 bytes", data.ErrLimit},
		"many empty bytes": {example(feature("a", 1, bytes.Repeat(field(1, nil), 4<<20))), "the values take more than", data.ErrLimit},
	}
	worst := 0.0
	for name, c := range cases {
		var err error
		took := datatest.Allocated(func() { _, err = ParseTFExample(c.record) })
		require.ErrorContains(t, err, c.want, name)
		require.ErrorIs(t, err, c.is, name)
		worst = max(worst, float64(took)/float64(2*len(c.record)+64<<20))
	}
	require.Less(t, worst, 1.0)
	t.Logf("F28: %d malformed tf.train.Examples: an error each, 0 process deaths, at most %.0f %% of 2 x record + 64 MB", len(cases), 100*worst)
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

func FuzzParseTFExample(f *testing.F) {
	f.Add([]byte("<html>"))
	f.Add(example(feature("a", 2, field(1, make([]byte, 8))), feature("b", 3, field(1, []byte{1, 0x80, 1})), feature("c", 1, field(1, []byte("x")))))
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := ParseTFExample(record)
		if err != nil {
			require.Nil(t, e)
			return
		}
		for name := range e {
			if field, err := e.Field(name, 1); err == nil {
				require.NoError(t, field.Array.Check())
			}
		}
	})
}
