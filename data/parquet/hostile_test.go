package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	pqthrift "github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// What F28 allows a reader to take.
func allowed(size int) uint64 { return 2*uint64(size) + 64<<20 }

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

var all = Format{Fields: []Field{
	{Name: "x", Columns: []string{"a", "b", "d", "flag"}, Fill: "0"},
	{Name: "c", Columns: []string{"c"}, DType: "uint8"},
	{Name: "e", Columns: []string{"e"}, Classes: []string{"a", "b"}},
	{Name: "l", Columns: []string{"l"}, DType: "int16"},
	{Name: "m", Columns: []string{"m"}, Classes: []string{"a", "b"}},
}}

// Each truncated file is an error, and each byte of a small file may have any value.
func TestF28_truncatedAndFlipped(t *testing.T) {
	files := map[string][]byte{"parquet-go": written(t, rowsOf(4))}
	for _, name := range []string{"pages2", "gzip"} {
		file, err := os.ReadFile("testdata/" + name + ".parquet")
		require.NoError(t, err)
		files[name] = file
	}
	pyarrow := Format{Fields: []Field{{Name: "x", Columns: []string{"f32", "i8", "bool"}}, {Name: "text", Columns: []string{"text"}, Classes: []string{"cat", "dog", "eel"}}, {Name: "list", Columns: []string{"list"}}}}
	tried, refused, most := 0, 0, uint64(0)
	for name, file := range files {
		form, step := pyarrow, flipStep
		if name == "parquet-go" {
			form, step = all, 1
		}
		_, err := open(file, form)
		require.NoError(t, err, name)
		for n := 0; n < len(file); n += step {
			_, err := open(file[:n], form)
			require.Error(t, err, "%s of %d bytes", name, n)
			tried, refused = tried+1, refused+1
		}
		for i := range file {
			if i%step != 0 {
				continue
			}
			was := file[i]
			flips := []byte{was ^ 1, was ^ 0x80, ^was, 0, 0xff}
			take := allocated(func() {
				for _, b := range flips {
					file[i] = b
					if _, err := open(file, form); err != nil {
						refused++
					}
				}
			})
			tried += len(flips)
			if most = max(most, take); take > allowed(len(file)) { // of five together
				t.Fatalf("%s with byte %d changed took %d bytes", name, i, take)
			}
			file[i] = was
		}
	}
	t.Logf("F28: %d files, %d refused, at most %.1f MB taken by five", tried, refused, float64(most)/1e6)
}

// A page with a checksum cannot be changed unseen.
func TestF28_checksums(t *testing.T) {
	file, err := os.ReadFile("testdata/pages2.parquet")
	require.NoError(t, err)
	form := Format{Fields: []Field{{Name: "x", Columns: []string{"i8"}, DType: "int8"}}}
	want, err := open(file, form)
	require.NoError(t, err)
	footer := len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	sums := 0
	for i := 0; i < footer; i += 5 {
		file[i] ^= 4
		got, err := open(file, form)
		if err == nil {
			require.Equal(t, want, got, "byte %d", i)
		} else if strings.Contains(err.Error(), "wrong checksum") {
			sums++
		}
		file[i] ^= 4
	}
	require.Positive(t, sums)
	t.Logf("F28: %d of %d flips: wrong checksum; no other set came of the rest", sums, footer/5)
}

// hostile is a file of one column with one page, as its parts say.
type hostile struct {
	column  format.SchemaElement
	meta    format.FileMetaData
	chunk   format.ColumnMetaData
	pages   []format.PageHeader
	payload [][]byte
}

func newHostile(typ format.Type, values int32, encoding format.Encoding, payload []byte) *hostile {
	h := &hostile{payload: [][]byte{payload}}
	h.column.Name = "a"
	h.column.Type = pqthrift.New(typ)
	h.column.RepetitionType = pqthrift.New(format.Required)
	h.meta.NumRows = int64(values)
	h.chunk.Type, h.chunk.NumValues = typ, int64(values)
	page := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(payload)), CompressedPageSize: int32(len(payload))}
	page.DataPageHeader = pqthrift.New(format.DataPageHeader{NumValues: values, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
	h.pages = []format.PageHeader{page}
	return h
}

func (h *hostile) dictionary(values int32, payload []byte) *hostile {
	page := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(payload)), CompressedPageSize: int32(len(payload))}
	page.DictionaryPageHeader = pqthrift.New(format.DictionaryPageHeader{NumValues: values, Encoding: format.Plain})
	h.pages = append([]format.PageHeader{page}, h.pages...)
	h.payload = append([][]byte{payload}, h.payload...)
	return h
}

func (h *hostile) file(t require.TestingT) []byte {
	file := []byte("PAR1")
	write := func(v any) {
		b, err := pqthrift.Marshal(new(pqthrift.CompactProtocol), v)
		require.NoError(t, err)
		file = append(file, b...)
	}
	for i := range h.pages {
		write(&h.pages[i])
		file = append(file, h.payload[i]...)
	}
	if h.chunk.DataPageOffset == 0 {
		h.chunk.DataPageOffset = 4
	}
	if h.chunk.TotalCompressedSize == 0 {
		h.chunk.TotalCompressedSize = int64(len(file)) - 4
	}
	if h.meta.Schema == nil {
		h.meta.Schema = []format.SchemaElement{{Name: "root", NumChildren: pqthrift.New(int32(1))}, h.column}
	}
	if h.meta.RowGroups == nil {
		h.meta.RowGroups = []format.RowGroup{{NumRows: h.meta.NumRows, Columns: []format.ColumnChunk{{MetaData: h.chunk}}}}
	}
	from := len(file)
	write(&h.meta)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(file)-from))
	return append(file, "PAR1"...)
}

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

// The header's own lengths and depths, in bytes that no writer makes.
func TestF28_footers(t *testing.T) {
	wrap := func(footer []byte) []byte {
		file := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
	}
	for name, row := range map[string]struct {
		file []byte
		err  string
	}{
		"empty":                 {nil, "not a Parquet file"},
		"something else":        {make([]byte, 100), "not a Parquet file"},
		"encrypted":             {[]byte("PARE....\x01\x00\x00\x00PARE"), "encrypted"},
		"length of the footer":  {[]byte("PAR1\xff\xff\xff\xffPAR1"), "4294967295 bytes"},
		"a list of 2^40":        {wrap(append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1<<40)...)), "too early"},
		"a text of 2^40":        {wrap(append([]byte{0x18}, binary.AppendUvarint(nil, 1<<40)...)), "too early"},
		"a map of 2^60":         {wrap(append(append([]byte{0x1b}, binary.AppendUvarint(nil, 1<<60)...), 0x11)), "too early"},
		"lists in lists":        {wrap(append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1<<20)...)), "deep"},
		"structures":            {wrap(bytes.Repeat([]byte{0x1c}, 1<<20)), "deep"},
		"empty schema elements": {wrap(append(append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1<<21)...), make([]byte, 1<<21)...)), "over the limit"},
		"a long number":         {wrap(append([]byte{0x36}, bytes.Repeat([]byte{0xff}, 30)...)), "64 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := allocated(func() { _, err = open(row.file, Format{}) })
			require.ErrorContains(t, err, row.err)
			require.LessOrEqual(t, took, allowed(len(row.file)))
			var format *data.FormatError
			if row.err != "over the limit" {
				require.ErrorAs(t, err, &format)
			}
		})
	}
}
