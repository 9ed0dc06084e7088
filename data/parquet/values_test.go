package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/klauspost/compress/snappy"
	pqthrift "github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

func TestF28_claims(t *testing.T) {
	const huge = math.MaxInt32
	ints := func(n int) []byte { return make([]byte, 4*n) }
	run := func(count uint64, rest ...byte) []byte { return append(binary.AppendUvarint(nil, count<<1), rest...) }
	uvarints := func(all ...uint64) (b []byte) {
		for _, v := range all {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	whole := newHostile(format.Int32, 3, format.Plain, ints(3)).file(t)
	set, err := open(whole, Format{})
	require.NoError(t, err)
	require.Equal(t, []int{3, 1}, set.Fields()[0].Array.Dims)

	packed := func(codec format.CompressionCodec, claim int32, payload []byte) *hostile {
		h := newHostile(format.Int32, 3, format.Plain, payload)
		h.chunk.Codec = codec
		h.pages[0].UncompressedPageSize = claim
		return h
	}
	changed := func(h *hostile, change func(h *hostile)) *hostile {
		change(h)
		return h
	}
	three := func() *hostile { return newHostile(format.Int32, 3, format.Plain, ints(3)) }
	for name, row := range map[string]struct {
		h      *hostile
		fields []Field
		err    string
	}{
		"values of a page":           {newHostile(format.Int32, huge, format.Plain, ints(3)), nil, "over the limit"},
		"values of a page, few rows": {changed(newHostile(format.Int32, huge, format.Plain, ints(3)), func(h *hostile) { h.meta.NumRows = 3 }), nil, "too early"},
		"rows":                       {changed(three(), func(h *hostile) { h.meta.NumRows = 1 << 40 }), nil, "over the limit"},
		"rows of 2^62":               {changed(three(), func(h *hostile) { h.meta.NumRows = 1 << 62 }), nil, "over the limit"},
		"rows below 0":               {changed(three(), func(h *hostile) { h.meta.NumRows = -1 }), nil, "a row group has -1 rows"},
		"values of the chunk":        {changed(three(), func(h *hostile) { h.chunk.NumValues = 1 << 40 }), nil, "too early"},
		"values below 0":             {changed(three(), func(h *hostile) { h.chunk.NumValues = -1 }), nil, "-1 values"},
		"length of the chunk":        {changed(three(), func(h *hostile) { h.chunk.TotalCompressedSize = 1 << 62 }), nil, "expected them between"},
		"place of the chunk":         {changed(three(), func(h *hostile) { h.chunk.DataPageOffset = 1 << 62 }), nil, "expected them between"},
		"place below 0":              {changed(three(), func(h *hostile) { h.chunk.DataPageOffset = -9 }), nil, "expected them between"},
		"size of the page":           {changed(three(), func(h *hostile) { h.pages[0].CompressedPageSize = huge }), nil, "where 12 are left"},
		"size below 0":               {changed(three(), func(h *hostile) { h.pages[0].CompressedPageSize = -1 }), nil, "expected 0 to 2147483647"},
		"unpacked size":              {changed(three(), func(h *hostile) { h.pages[0].UncompressedPageSize = huge }), nil, "is not packed"},
		"snappy":                     {packed(format.Snappy, huge, snappy.Encode(nil, ints(3))), nil, "over the limit"},
		"snappy's own length":        {packed(format.Snappy, 12, uvarints(1<<31)), nil, "snappy says"},
		"gzip":                       {packed(format.Gzip, huge, ints(3)), nil, "over the limit"},
		"zstd":                       {packed(format.Zstd, huge, append(ints(10000), 1)), nil, "over the limit"},
		"zstd's own size":            {packed(format.Zstd, 12, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0}), nil, "unpack"},
		"no such codec":              {packed(format.Brotli, 12, ints(3)), nil, "codec 4"},
		"dictionary":                 {newHostile(format.Int32, 3, format.RLEDictionary, []byte{0, 6}).dictionary(huge, ints(1)), nil, "a dictionary of 2147483647 values in 4 bytes"},
		"dictionary of texts":        {newHostile(format.ByteArray, 3, format.RLEDictionary, []byte{0, 6}).dictionary(huge, ints(1)), []Field{{Name: "x", Classes: []string{""}}}, "a dictionary of 2147483647 values in 4 bytes"},
		"no dictionary":              {newHostile(format.Int32, 3, format.RLEDictionary, []byte{0, 6}), nil, "there was none"},
		"place in the dictionary":    {newHostile(format.Int32, 3, format.RLEDictionary, []byte{32, 6, 0xff, 0xff, 0xff, 0xff}).dictionary(1, ints(1)), nil, "place 4294967295 in a dictionary of 1"},
		"bits of the places":         {newHostile(format.Int32, 3, format.RLEDictionary, []byte{255, 6}).dictionary(1, ints(1)), nil, "255 bits"},
		"a run of 2^31":              {newHostile(format.Int32, huge, format.RLEDictionary, append([]byte{0}, run(huge)...)).dictionary(1, ints(1)), nil, "over the limit"},
		"a run of 2^60":              {newHostile(format.Int32, 3, format.RLEDictionary, append([]byte{0}, run(1<<60)...)).dictionary(1, ints(1)), nil, "33 bits"},
		"runs of nothing":            {newHostile(format.Int32, 3, format.RLEDictionary, append([]byte{0}, make([]byte, 5000)...)).dictionary(1, ints(1)), nil, "too early"},
		"differences":                {newHostile(format.Int32, 3, format.DeltaBinaryPacked, uvarints(128, 4, 1<<40, 0)), nil, "1099511627776 differences"},
		"blocks of differences":      {newHostile(format.Int32, 3, format.DeltaBinaryPacked, uvarints(1<<62, 4, 3, 0)), nil, "blocks of 4611686018427387904"},
		"parts of a block":           {newHostile(format.Int32, 3, format.DeltaBinaryPacked, uvarints(128, 1<<62, 3, 0)), nil, "4611686018427387904 parts"},
		"bits of differences":        {newHostile(format.Int32, 3, format.DeltaBinaryPacked, append(uvarints(128, 1, 3, 0, 0), 200)), nil, "200 bits"},
		"lengths of texts":           {newHostile(format.ByteArray, 1, format.DeltaLengthByteArray, uvarints(128, 1, 1, 1<<40)), []Field{{Name: "x", DType: "uint8"}}, "too early"},
		"a text":                     {newHostile(format.ByteArray, 1, format.Plain, []byte{255, 255, 255, 255}), []Field{{Name: "x", DType: "uint8"}}, "too early"},
		"fixed bytes":                {changed(newHostile(format.FixedLenByteArray, 1, format.Plain, ints(1)), func(h *hostile) { h.column.TypeLength = pqthrift.New(int32(huge)) }), []Field{{Name: "x", DType: "uint8"}}, "too early"},
		"a text, over and over":      {newHostile(format.ByteArray, 200_000, format.RLEDictionary, append([]byte{0}, run(200_000)...)).dictionary(1, append(binary.LittleEndian.AppendUint32(nil, 100_000), make([]byte, 100_000)...)), []Field{{Name: "x", DType: "uint8"}}, "over the limit"},
		"a list without an end":      {changed(newHostile(format.Int32, huge, format.RLEDictionary, bytes.Join([][]byte{{8, 0, 0, 0}, {2, 0}, run(huge, 1), {7, 0, 0, 0}, run(huge, 1), {0}, {0}, run(huge)}, nil)).dictionary(1, ints(1)), func(h *hostile) { h.column.RepetitionType = pqthrift.New(format.Repeated); h.meta.NumRows = 1 }), nil, "over the limit"},
		"children": {changed(three(), func(h *hostile) {
			h.meta.Schema = []format.SchemaElement{{Name: "root", NumChildren: pqthrift.New(int32(huge))}, h.column}
		}), nil, "more children than elements"},
		"no schema": {changed(three(), func(h *hostile) { h.meta.Schema = []format.SchemaElement{} }), nil, "no schema"},
		"a tree without an end": {changed(three(), func(h *hostile) {
			deep := make([]format.SchemaElement, 100_000)
			for i := range deep {
				deep[i] = format.SchemaElement{Name: "n", NumChildren: pqthrift.New(int32(1)), RepetitionType: pqthrift.New(format.Optional)}
			}
			h.meta.Schema = deep
		}), nil, "64 deep"},
		"a path without an end": {changed(three(), longPaths), nil, "over the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			file := row.h.file(t)
			var err error
			took := allocated(func() { _, err = open(file, Format{Fields: row.fields}) })
			require.ErrorContains(t, err, row.err)
			require.LessOrEqual(t, took, allowed(len(file)))
			t.Logf("%.1f MB: %v", float64(took)/1e6, err)
		})
	}
}

// longPaths makes 60,000 columns below a name of 20 kB: their full names would take 1.2 GB.
func longPaths(h *hostile) {
	h.meta.Schema = []format.SchemaElement{{Name: "root", NumChildren: pqthrift.New(int32(1))}, {Name: string(make([]byte, 20_000)), NumChildren: pqthrift.New(int32(60_000)), RepetitionType: pqthrift.New(format.Required)}}
	for i := range 60_000 {
		column := h.column
		column.Name = fmt.Sprint(i)
		h.meta.Schema = append(h.meta.Schema, column)
	}
}
