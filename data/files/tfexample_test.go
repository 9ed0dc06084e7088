package files

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

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
