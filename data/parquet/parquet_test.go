package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestPyarrow(t *testing.T) {
	files, err := filepath.Glob("testdata/*.parquet")
	require.NoError(t, err)
	require.Len(t, files, 5)
	format := Format{Fields: []Field{
		{Name: "x", Columns: []string{"f32", "f64", "i8"}},
		{Name: "i8", DType: "int8", Columns: []string{"part.a"}, Fill: "1"},
		{Name: "u32", Columns: []string{"u32"}, DType: "uint32"},
		{Name: "i64", Columns: []string{"i64"}, DType: "int64"},
		{Name: "bool", Columns: []string{"bool"}, DType: "bool"},
		{Name: "text", Columns: []string{"text"}, Classes: []string{"dog", "cat", "eel"}},
		{Name: "null", Columns: []string{"null"}, DType: "float64", Fill: "-1.5"},
		{Name: "list", Columns: []string{"list"}, Dims: []int{3, 1}},
		{Name: "fixed", Columns: []string{"fixed"}, DType: "int64"},
		{Name: "raw", Columns: []string{"raw"}, DType: "uint8"},
	}}
	format.Fields[1].DType = "int32"
	const n = 300
	var x, list []float32
	var fill []float64
	var part, text []int32
	var u32 []uint32
	var i64, fixed []int64
	var yes []bool
	var raw []uint8
	for i := range n {
		x = append(x, float32(i)/4, -float32(i)/8, float32(i%100-50))
		part = append(part, int32(i))
		u32 = append(u32, uint32(math.MaxUint32-i))
		i64 = append(i64, int64(i)*1e12-5)
		yes = append(yes, i%3 == 0)
		text = append(text, []int32{1, 0, 2}[i%3])
		if fill = append(fill, float64(i)); i%5 == 0 {
			fill[i] = -1.5
		}
		list = append(list, float32(i), float32(i+1), float32(i+2))
		fixed = append(fixed, int64(i), -int64(i))
		raw = append(raw, uint8(i), 7)
	}
	want := []data.Field{
		data.X(x, n, 3), data.Named("i8", part, n), data.Named("u32", u32, n), data.Named("i64", i64, n), data.Named("bool", yes, n),
		data.Named("text", text, n), data.Named("null", fill, n), data.Named("list", list, n, 3, 1), data.Named("fixed", fixed, n, 2), data.Named("raw", raw, n, 2),
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			set, err := Open(path, format)
			require.NoError(t, err)
			require.Equal(t, want, set.Fields())
			for _, size := range []int{1, 7, 128, 300, 1000} {
				back, err := data.Collect(Stream(path, format, size), n)
				require.NoError(t, err)
				require.Equal(t, want, back.Fields(), size)
			}
			at := 0
			for b, err := range Stream(path, format, 90) {
				require.NoError(t, err)
				require.Equal(t, at, b.At)
				at += b.Size
			}
			require.Equal(t, n, at)
			words := 0
			for b, err := range Texts(path, "text") {
				require.NoError(t, err)
				require.Equal(t, []string{"cat", "dog", "eel"}[words%3], string(b))
				words++
			}
			require.Equal(t, n, words)
		})
	}
}

// row is written by parquet-go in its default encodings.
type row struct {
	A    int32    `parquet:"a"`
	B    float64  `parquet:"b,split"`
	C    string   `parquet:"c"`
	D    int64    `parquet:"d,delta,optional"`
	E    string   `parquet:"e,dict"`
	L    []int32  `parquet:"l"`
	M    []string `parquet:"m,list"`
	Flag bool     `parquet:"flag"`
}

func rowsOf(n int) []row {
	all := make([]row, n)
	for i := range all {
		all[i] = row{int32(i), float64(i) / 2, fmt.Sprint("text ", i), int64(i), []string{"a", "b"}[i%2], []int32{int32(i), 1}, []string{"b", "a"}, i%2 == 0}
	}
	return all
}

func written[T any](t require.TestingT, rows []T, options ...pq.WriterOption) []byte {
	var b bytes.Buffer
	w := pq.NewGenericWriter[T](&b, options...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func open(file []byte, format Format) (*data.Set, error) {
	return Read(bytes.NewReader(file), int64(len(file)), format)
}

func TestParquetGo(t *testing.T) {
	format := Format{Fields: []Field{
		{Name: "x", Columns: []string{"a", "b", "flag"}, DType: "float64"},
		{Name: "d", Columns: []string{"d"}, DType: "int32", Fill: "0"},
		{Name: "e", Columns: []string{"e"}, Classes: []string{"a", "b"}},
		{Name: "l", Columns: []string{"l"}, DType: "int16"},
		{Name: "m", Columns: []string{"m"}, Classes: []string{"a", "b"}},
	}}
	for name, options := range map[string][]pq.WriterOption{
		"version 1":   {pq.DataPageVersion(1)},
		"version 2":   {pq.DataPageVersion(2)},
		"snappy":      {pq.DataPageVersion(1), pq.Compression(&pq.Snappy), pq.PageBufferSize(100)},
		"zstd":        {pq.DataPageVersion(2), pq.Compression(&pq.Zstd), pq.PageBufferSize(100), pq.MaxRowsPerRowGroup(60)},
		"gzip":        {pq.DataPageVersion(2), pq.Compression(&pq.Gzip), pq.MaxRowsPerRowGroup(1)},
		"large pages": {pq.PageBufferSize(1 << 20)},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 200
			set, err := open(written(t, rowsOf(n), options...), format)
			require.NoError(t, err)
			for k, f := range set.Fields() {
				require.Equal(t, [][]int{{n, 3}, {n}, {n}, {n, 2}, {n, 2}}[k], f.Array.Dims)
			}
			for i := range n {
				require.Equal(t, []float64{float64(i), float64(i) / 2, float64(1 - i%2)}, set.Fields()[0].Array.Flat.([]float64)[3*i:3*i+3])
				require.Equal(t, int32(i), set.Fields()[1].Array.Flat.([]int32)[i])
				require.Equal(t, int32(i%2), set.Fields()[2].Array.Flat.([]int32)[i])
				require.Equal(t, []int16{int16(i), 1}, set.Fields()[3].Array.Flat.([]int16)[2*i:2*i+2])
				require.Equal(t, []int32{1, 0}, set.Fields()[4].Array.Flat.([]int32)[2*i:2*i+2])
			}
		})
	}
}

// pandas' index columns are not features, row groups may be empty, and 16-bit floats are not texts.
func TestPandas(t *testing.T) {
	fields := []Field{{Name: "x"}, {Name: "y", Columns: []string{"y"}, DType: "int32"}}
	set, err := Open("testdata/pandas/shuffled.parquet", Format{Fields: fields})
	require.NoError(t, err)
	require.Equal(t, []int{4, 1}, set.Fields()[0].Array.Dims)
	require.Equal(t, []float32{1, 2, 3, 4}, set.Fields()[0].Array.Flat)
	require.Equal(t, []int32{0, 0, 1, 1}, set.Fields()[1].Array.Flat)
	texts, err := Open("testdata/pandas/shuffled.parquet", Format{Texts: true})
	require.NoError(t, err)
	require.Len(t, texts.Fields(), 2)
	named, err := Open("testdata/pandas/shuffled.parquet", Format{Fields: []Field{{Name: "index", Columns: []string{"__index_level_0__"}, DType: "int64"}}})
	require.NoError(t, err)
	require.Equal(t, []int64{3, 0, 2, 1}, named.Fields()[0].Array.Flat)

	_, err = Open("testdata/pandas/empty.parquet", Format{Fields: fields})
	require.ErrorContains(t, err, "the file has no examples")
	for _, format := range []Format{{Texts: true}, {Fields: []Field{{Name: "x"}}}, {Fields: []Field{{Name: "x", Classes: []string{"a"}}}}} {
		_, err = Open("testdata/pandas/half.parquet", format)
		require.ErrorContains(t, err, "floats of 16 bits, which are not supported")
	}
}

func TestMessages(t *testing.T) {
	type columns struct {
		N *int32  `parquet:"n"`
		T string  `parquet:"t"`
		F float64 `parquet:"f"`
		L []int32 `parquet:"l"`
		D int64   `parquet:"d,decimal(2:12)"`
		U uint64  `parquet:"u"`
		M []struct {
			V []int32 `parquet:"v"`
		} `parquet:"m"`
	}
	one := int32(1)
	file := written(t, []columns{{&one, "a", 1.5, []int32{1}, 5, math.MaxUint64, nil}, {nil, "b", math.NaN(), []int32{1, 2}, 5, 1, nil}})
	named := func(column string, rest Field) Format {
		rest.Name, rest.Columns = "x", []string{column}
		return Format{Fields: []Field{rest}}
	}
	for name, c := range map[string]struct {
		format Format
		err    string
	}{
		"null":             {named("n", Field{}), `row 2, column "n": the value is null; set Field.Fill to its replacement, or leave the column out`},
		"nan":              {named("f", Field{}), `row 2, column "f": the value NaN is not finite as float32 (set Field.Fill to replace such values)`},
		"no integer":       {named("f", Field{DType: "int8"}), `row 1, column "f": the value 1.5 is not of dtype int8`},
		"too large":        {named("u", Field{DType: "int64"}), `row 1, column "u": the value 18446744073709551615 is not of dtype int64`},
		"class":            {named("t", Field{Classes: []string{"a"}}), `row 2, column "t": the text "b" is not one of 1 classes: ["a"]`},
		"classes of n":     {named("f", Field{Classes: []string{"a"}}), `row 1, column "f": classes are texts, and it holds numbers; leave Classes out to read the numbers unchanged`},
		"text":             {named("t", Field{}), `field "x": column "t": it holds text; name its Classes, take its bytes with the type uint8, or read it with parquet.Texts`},
		"lengths":          {named("l", Field{}), `row 2, column "l": it has 2 values or bytes, the first row 1; expected the same number in each row`},
		"dims":             {named("l", Field{Dims: []int{2}}), `row 1, column "l": it has 1 values or bytes, but Dims are [2]`},
		"dims of a number": {named("f", Field{Dims: []int{1}}), `field "x": dims [1] for a column that holds no lists or bytes`},
		"decimal":          {named("d", Field{}), `field "x": column "d": it has decimals, which are not supported; write them as doubles`},
		"lists of lists":   {named("m", Field{}), `field "x": column "m": it has lists of lists, which are not supported; write flat ones, and set Field.Dims`},
		"no column":        {named("q", Field{}), `field "x": there is no column "q"; there are ["n" "t" "f" "l" "d" "u" "m"]`},
		"dtype":            {named("f", Field{DType: "float16"}), `field "x": unknown type "float16", expected float32, float64, int8 to int64, uint8 to uint64, bool or string`},
		"fill":             {named("f", Field{DType: "int8", Fill: "300"}), `field "x": fill: the value 300 is not of dtype int8`},
		"fill text":        {named("f", Field{Fill: "x"}), `field "x": fill "x" is not a number: invalid syntax`},
		"limit":            {Format{Fields: named("f", Field{}).Fields, Limit: 100}, `reading takes more than 100 bytes (set Format.Limit, or stream smaller batches): over the limit`},
	} {
		_, err := open(file, c.format)
		require.EqualError(t, err, "parquet: read: "+c.err, name)
	}
	_, err := open(file, named("n", Field{}))
	var bad *data.RowError
	require.True(t, errors.As(err, &bad))
	require.Equal(t, 2, bad.Row)
	path := filepath.Join(t.TempDir(), "a.parquet")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	_, err = Open(path, named("n", Field{}))
	require.ErrorContains(t, err, path+": row 2")
	_, err = Open(path+"x", Format{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = open(written(t, []columns{}), named("f", Field{}))
	require.EqualError(t, err, "parquet: read: the file has no examples")
	require.NoError(t, os.WriteFile(path, written(t, []columns{}), 0o600))
	streamed := 0
	for _, err := range Stream(path, named("f", Field{}), 2) {
		require.EqualError(t, err, "parquet: stream: "+path+": the file has no examples")
		streamed++
	}
	require.Equal(t, 1, streamed)
	set, err := open(file, named("f", Field{Fill: "2"}))
	require.NoError(t, err)
	require.Equal(t, []float32{1.5, 2}, set.Fields()[0].Array.Flat)
}
