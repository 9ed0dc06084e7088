package parquet

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	pqthrift "github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
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
