package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
	"github.com/lazo-ml/lazo/internal/arrays"
)

var iris = Format{Fields: []Field{
	{Name: "x"},
	{Name: "y", Columns: []string{"kind"}, Classes: []string{"setosa", "virginica"}},
}}

func TestReadCSV(t *testing.T) {
	for _, row := range []struct {
		name   string
		file   string
		format Format
		want   []data.Field
	}{
		{"a field of all", "a,b\n1,2\n3,4.5\n", Format{}, []data.Field{data.X([]float32{1, 2, 3, 4.5}, 2, 2)}},
		{"classes", "a,kind,b\n1,virginica,2\n3,setosa,4\n", iris, []data.Field{data.X([]float32{1, 2, 3, 4}, 2, 2), data.Y([]int32{1, 0}, 2)}},
		{"columns in a custom order", "a,b\n1,2\n", Format{Fields: []Field{{Name: "x", Columns: []string{"b", "a", "b"}}}}, []data.Field{data.X([]float32{2, 1, 2}, 1, 3)}},
		{"no header", "1;2\n3;4\n", Format{NoHeader: true, Comma: ';', Fields: []Field{{Name: "y", Columns: []string{"2"}, DType: "int64"}}}, []data.Field{data.Y([]int64{2, 4}, 2)}},
		{"types", "a,b,c\n-1,255,TRUE\n", Format{Fields: []Field{{"i", []string{"a"}, "int8", nil, ""}, {"u", []string{"b"}, "uint8", nil, ""}, {"b", []string{"c"}, "bool", nil, ""}}},
			[]data.Field{data.Named("i", []int8{-1}, 1), data.Named("u", []uint8{255}, 1), data.Named("b", []bool{true}, 1)}},
		{"filled", "a,b\n,NA\n1,2\n", Format{Missing: []string{"NA"}, Fields: []Field{{Name: "x", Fill: "-1"}}}, []data.Field{data.X([]float32{-1, -1, 1, 2}, 2, 2)}},
		{"quotes, spaces, a byte order mark, CRLF, no last line end", "\ufeffa,\" b\"\r\n 1 ,\"2\"\r\n\r\n3,4", Format{Fields: []Field{{Name: "x", Columns: []string{"a", "b"}}}}, []data.Field{data.X([]float32{1, 2, 3, 4}, 2, 2)}},
		{"texts", "a,,b\n 1 ,NA,\n,\"x, y\",02\n", Format{Texts: true, Missing: []string{"NA"}},
			[]data.Field{data.Named("a", []string{"1", ""}, 2), data.Named("2", []string{"", "x, y"}, 2), data.Named("b", []string{"", "02"}, 2)}},
		{"texts beside numbers", "a,b\n1,NA\n", Format{Missing: []string{"NA"}, Fields: []Field{{Name: "x", Columns: []string{"a"}}, {Name: "y", DType: "string", Fill: "?"}}},
			[]data.Field{data.X([]float32{1}, 1), data.Y([]string{"?"}, 1, 1)}},
		{"quoted line ends", "a\n\"1\n\"\n", Format{}, []data.Field{data.X([]float32{1}, 1, 1)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			want, err := data.New(row.want...)
			require.NoError(t, err)
			for kind, file := range map[string][]byte{"plain": []byte(row.file), "packed": datatest.Gzip(t, []byte(row.file))} {
				got, err := Read(iotest.OneByteReader(bytes.NewReader(file)), row.format)
				require.NoError(t, err, kind)
				require.Equal(t, want, got, kind)
				path := filepath.Join(t.TempDir(), "file")
				require.NoError(t, os.WriteFile(path, file, 0o600))
				got, err = Open(path, row.format)
				require.NoError(t, err, kind)
				require.Equal(t, want, got, kind)
			}
		})
	}
}

// A file of several blocks is one set.
func TestRead_ofSeveralBlocks(t *testing.T) {
	const rows = 40_000
	text, want := strings.Builder{}, make([]float32, 0, 2*rows)
	text.WriteString("n,half\n")
	for i := range rows {
		fmt.Fprintf(&text, "%d,%d.5\n", i, i)
		want = append(want, float32(i), float32(i)+0.5)
	}
	require.Greater(t, text.Len(), 3*csvBlock)
	set, err := Read(strings.NewReader(text.String()), Format{})
	require.NoError(t, err)
	x, err := set.Field("x")
	require.NoError(t, err)
	require.Equal(t, data.Array{Flat: want, Dims: []int{rows, 2}}, x)
}

func TestStream_law(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		var text strings.Builder
		text.WriteString("a,kind\n")
		for i := range n {
			fmt.Fprintf(&text, "%d,%s\n", i, []string{"setosa", "virginica"}[i%2])
		}
		path := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		whole, err := Open(path, iris)
		require.NoError(t, err)
		size := rapid.IntRange(1, 800).Draw(t, "size")
		var want, got []data.Batch
		for b, err := range whole.Batches(size, data.Kept).All() {
			require.NoError(t, err)
			want = append(want, data.Batch{Fields: b.Fields, Size: b.Size, At: b.At}) // a stream does not know how many there are
		}
		for b, err := range Stream(path, iris, size) {
			require.NoError(t, err)
			require.Nil(t, b.Deal)
			_, _, known := b.InEpoch()
			require.False(t, known)
			got = append(got, data.Batch{Fields: b.Fields, Size: b.Size, At: b.At})
		}
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "a stream is the set in batches")
	})
}

var malformedCSV = []struct {
	name, file string
	format     Format
	want       string
	is         error
}{
	{"empty", "", Format{}, "header (line 1): the file is empty", nil},
	{"header alone", "a,b\n", Format{}, "the file has no examples: it has a header, but no rows after it", nil},
	{"header alone, without a line end", "a,b", Format{}, "the file has no examples: it has a header, but no rows after it", nil},
	{"line ends of bare CR", "a,b\r1,2\r3,4\r", Format{}, "header (line 1): the file is one line, with bare carriage returns in it (CR): write line ends as LF or CRLF", nil},
	{"line ends of bare CR, one column", "a\r1\r2", Format{}, "header (line 1): the file is one line, with bare carriage returns in it (CR)", nil},
	{"line ends of bare CR, named columns", "a,kind,b\r1,setosa,2\r", iris, "header (line 1): the file is one line, with bare carriage returns in it (CR)", nil},
	{"line ends of bare CR, no header", "1,2\r3,4\r", Format{NoHeader: true}, `row 1 (line 1), column "2": the cell "2\r3" cannot be read as float32: invalid syntax: it has a bare carriage return (CR) in it: write line ends as LF or CRLF`, nil},
	{"line ends of bare CR behind the header", "a\n1\r2\r", Format{}, `the cell "1\r2" cannot be read as float32: invalid syntax: it has a bare carriage return (CR) in it`, nil},
	{"no number", "a,b\n1,2\n3,x\n", Format{}, `row 2 (line 3), column "b": the cell "x" cannot be read as float32: invalid syntax`, nil},
	{"not finite", "a\nNaN\n", Format{}, `row 1 (line 2), column "a": the cell "NaN" cannot be read as float32: expected a finite number`, nil},
	{"infinite", "a\n-inf\n", Format{}, `expected a finite number: if it marks a missing value, name "-inf" in Format.Missing, and set Field.Fill to its replacement`, nil},
	{"a decimal comma", "a,b\n\"1,5\",2\n", Format{}, `the cell "1,5" cannot be read as float32: invalid syntax: write a decimal point instead of the comma in "1,5"`, nil},
	{"a comma of thousands or decimals", "a,b\n\"1,250\",2\n", Format{}, `invalid syntax: write "1,250" with a point if its comma is a decimal one, and without the comma if it separates thousands`, nil},
	{"commas between thousands", "a,b\n\"1,234,567\",2\n", Format{}, `invalid syntax: write "1,234,567" without the commas between thousands`, nil},
	{"UTF-16", "\xff\xfea\x00,\x00b\x00\n\x00", Format{Texts: true}, "it begins with the byte order mark of UTF-16: write it as UTF-8", nil},
	{"a decimal comma among semicolons", "a;b\n1,5;2\n", Format{Comma: ';'}, `invalid syntax: write a decimal point instead of the comma in "1,5", or set Format.Comma to ',' if that separates the cells`, nil},
	{"too large for the type", "a\n1e39\n", Format{}, "value out of range", nil},
	{"too large for int8", "a\n128\n", Format{Fields: []Field{{Name: "a", DType: "int8"}}}, `the cell "128" cannot be read as int8: value out of range`, nil},
	{"missing", "a,b\n1,\n", Format{}, `row 1 (line 2), column "b": the cell "" marks a missing value; set Field.Fill`, nil},
	{"semicolons and a decimal comma", "a;b;c\n1,5;2;3\n", Format{}, "row 1 (line 2): 2 cells, expected 1 as in the first row: set Format.Comma to ';' if that separates the cells", nil},
	{"tabs and a comma in a text", "a\tb\n1\tx, y\n", Format{Texts: true}, `2 cells, expected 1 as in the first row: set Format.Comma to '\t' if that separates the cells`, nil},
	{"spaces and a decimal comma", "a b\n1,5 2\n", Format{}, "2 cells, expected 1 as in the first row: set Format.Comma if another character than ',' separates the cells", nil},
	{"too few cells", "a,b\n1,2\n\n3\n", Format{}, "row 2 (line 4): 1 cells, expected 2 as in the first row", nil},
	{"too many cells", "a,b\n1,2,3\n", Format{}, "row 1 (line 2): 3 cells, expected 2", nil},
	{"unknown class", "a,kind\n1,rose\n", iris, `row 1 (line 2), column "kind": the cell "rose" cannot be read as class: expected one of 2: ["setosa" "virginica"]`, nil},
	{"no such column", "a,b\n1,2\n", iris, `header (line 1): field "y": there is no column "kind"; there are ["a" "b"]`, nil},
	{"two columns of a name", "a,a\n1,2\n", Format{}, `two columns have the name "a"`, nil},
	{"quote without end", "a\n\"1\n2\n", Format{}, `row 1 (line 2): extraneous or missing " in quoted-field`, nil},
	{"bare quote", "a\n1\"\n", Format{}, `row 1 (line 2): bare " in non-quoted-field`, nil},
	{"a row without end", "a\n" + strings.Repeat("1", 600<<10), Format{}, "row 1 (line 2): the row has more than 262144 bytes (set Format.MaxRow): over the limit", data.ErrLimit},
	{"a quote without end over many lines", "a\n\"" + strings.Repeat("1\n", 300<<10), Format{}, "the row has more than", data.ErrLimit},
	{"a short limit", "a\n" + strings.Repeat("1", 9000), Format{MaxRow: 100}, "the row has more than 100 bytes", data.ErrLimit},
	{"columns without end", strings.Repeat(",", 200<<10) + "\n", Format{NoHeader: true}, "204801 columns, expected at most 65536", data.ErrLimit},
	{"more values than allowed", "a\n1\n2\n3\n", Format{Limit: 8}, "row 3 (line 4): the values take more than 8 bytes (set Format.Limit, or use Stream): over the limit", data.ErrLimit},
	{"more texts than allowed", "a,b\n1,23\n2,34\n", Format{Texts: true, Limit: 40}, "row 2 (line 3): the values take more than 40 bytes (set Format.Limit, or use Stream): over the limit", data.ErrLimit},
	{"texts and fields", "a\n1\n", Format{Texts: true, Fields: []Field{{Name: "x"}}}, "the format has both Texts and Fields, expected one of them", nil},
	{"binary", "\x00\x01\xff\xfe\n\x00", Format{}, "header (line 1): the name of column 1", nil},
	{"a huge cell", "a\n" + strings.Repeat("9", 100<<10), Format{}, "value out of range", nil},
	{"a fill that is none", "a\n1\n", Format{Fields: []Field{{Name: "x", Fill: "none"}}}, `field "x": fill: the cell "none" cannot be read as float32`, nil},
	{"an unknown type", "a\n1\n", Format{Fields: []Field{{Name: "x", DType: "float16"}}}, `field "x": unknown type "float16"`, nil},
	{"a class twice", "a\n1\n", Format{Fields: []Field{{Name: "x", Classes: []string{"1", "1"}}}}, `the class "1" is listed twice`, nil},
	{"two fields of the rest", "a\n1\n", Format{Fields: []Field{{Name: "x"}, {Name: "y"}}}, `fields "x" and "y" both name no columns`, nil},
	{"nothing left", "a\n1\n", Format{Fields: []Field{{Name: "x"}, {Name: "y", Columns: []string{"a"}}}}, `field "x": the other fields take all columns`, nil},
	{"a field without name", "a\n1\n", Format{Fields: []Field{{}}}, "field 1 of 1 has no name", nil},
	{"a quote as separator", "a\n1\n", Format{Comma: '"'}, "the format has Comma '\"' and MaxRow 0", nil},
	{"gzip in gzip", "\x1f\x8b", Format{}, "in the gzip header: the file ends too early", io.ErrUnexpectedEOF},
}

//lazo:norace
func TestF28_MalformedCSV(t *testing.T) {
	dir := t.TempDir()
	files, worst, typed := 0, 0.0, 0
	try := func(name string, file []byte, format Format, want string, is error) {
		path := filepath.Join(dir, fmt.Sprint(files))
		require.NoError(t, os.WriteFile(path, file, 0o600))
		files++
		var err error
		took := datatest.Allocated(func() { _, err = Open(path, format) })
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, path, name)
		if is != nil {
			require.ErrorIs(t, err, is, name)
		}
		row, form := (*data.RowError)(nil), (*data.FormatError)(nil)
		if errors.As(err, &row) || errors.As(err, &form) {
			typed++
		}
		share := float64(took) / float64(2*len(file)+64<<20)
		require.Less(t, share, 1.0, "%s took %d bytes", name, took)
		worst = max(worst, share)
		if !errors.Is(err, data.ErrLimit) { // a stream has no limit
			var streamed error
			for _, err := range Stream(path, format, 2) {
				streamed = err
			}
			require.ErrorContains(t, streamed, want, name)
		}
	}
	for _, m := range malformedCSV {
		try(m.name, []byte(m.file), m.format, m.want, m.is)
		if !strings.Contains(m.name, "gzip") {
			try("packed "+m.name, datatest.Gzip(t, []byte(m.file)), m.format, m.want, m.is)
		}
	}
	packed := datatest.Gzip(t, []byte("a\n1\n2\n"))
	wrongSum := bytes.Clone(packed)
	wrongSum[len(wrongSum)-8] ^= 1
	try("gzip checksum", wrongSum, Format{}, "unpack, in the rows", nil)
	try("gzip cut", packed[:len(packed)-9], Format{}, "ends too early", io.ErrUnexpectedEOF)
	bomb := datatest.Gzip(t, append([]byte("a\n"), bytes.Repeat([]byte("1\n"), 5<<19)...))
	wideInts := []Field{{Name: "x", DType: "int64"}}
	try("bomb of rows", bomb, Format{Fields: wideInts}, "the values take more than", data.ErrLimit)
	try("bomb of empty texts", bomb, Format{Texts: true}, "the values take more than", data.ErrLimit)
	wide := datatest.Gzip(t, bytes.Repeat(append(bytes.Repeat([]byte("1,"), 60_000), '1', '\n'), 50))
	try("bomb of wide rows", wide, Format{NoHeader: true, Fields: wideInts}, "the values take more than", data.ErrLimit)
	t.Logf("F28: %d malformed CSV files: errors in all (%d typed; the others are of the format asked for or an empty file), 0 process deaths, at most %.0f %% of the memory allowed (2 x file + 64 MB)", files, typed, 100*worst)
}

// A stream of any length takes the memory of a batch.
func TestF28_StreamedBombTakesTheMemoryOfABatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb")
	require.NoError(t, os.WriteFile(path, datatest.Gzip(t, append([]byte("a\n"), bytes.Repeat([]byte("1\n"), 1<<19)...)), 0o600))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most, n := uint64(0), 0
	for b, err := range Stream(path, Format{}, 1<<14) {
		require.NoError(t, err)
		if n += b.Size; n%(1<<17) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
	}
	require.Equal(t, 1<<19, n)
	require.Less(t, most, uint64(4<<20))
	t.Logf("F28: %d rows streamed, %d kB of live heap at most", n, most>>10)
}

func TestReadCSVPassesErrorsOn(t *testing.T) {
	broken := errors.New("disk on fire")
	file := "a,b\n1,2\n3,4\n"
	for at := range len(file) {
		_, err := Read(io.MultiReader(strings.NewReader(file[:at]), iotest.ErrReader(broken)), Format{})
		require.ErrorIs(t, err, broken, "at %d", at)
		var row *data.RowError
		require.False(t, errors.As(err, &row), "the file is not at fault: %v", err)
	}
}

func FuzzReadCSV(f *testing.F) {
	for _, m := range malformedCSV {
		if len(m.file) < 1<<10 {
			f.Add([]byte(m.file))
			f.Add(datatest.Gzip(f, []byte(m.file)))
		}
	}
	f.Add([]byte("a,kind\n1,setosa\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, format := range []Format{{}, iris, {Texts: true, Missing: []string{"?"}}, {NoHeader: true, Missing: []string{"?"}, Fields: []Field{{Name: "x", Fill: "0", DType: "int16"}}}} {
			format.Limit, format.MaxRow = 1<<16, 1<<12
			set, err := Read(bytes.NewReader(file), format)
			if err != nil {
				require.Nil(t, set)
				continue
			}
			require.Positive(t, set.Len())
			bytes := 0
			for _, field := range set.Fields() {
				require.NoError(t, arrays.Check(field.Array.Flat, field.Array.Dims))
				bytes += field.Array.Size() * 2
				if texts, ok := field.Array.Flat.([]string); ok {
					bytes += field.Array.Size()*14 + len(strings.Join(texts, ""))
				}
			}
			require.LessOrEqual(t, bytes, 1<<16)
		}
	})
}

// A text counts with its length against the limit, so that one of few long cells is refused as well.
func TestReadCSV_textsCount(t *testing.T) {
	file := "a,b\n" + strings.Repeat(strings.Repeat("x", 100)+",\n", 10)
	for limit, fits := range map[int64]bool{10 * (2*16 + 100): true, 10*(2*16+100) - 1: false} {
		_, err := Read(strings.NewReader(file), Format{Texts: true, Limit: limit})
		require.Equal(t, fits, err == nil, "%d", limit)
		require.Equal(t, !fits, errors.Is(err, data.ErrLimit))
	}
}

// Texts that are no UTF-8 are an error, in names and in cells.
func TestS36_latin1(t *testing.T) {
	_, err := Read(strings.NewReader("caf\xe9,b\n1,2\n"), Format{Texts: true})
	require.ErrorContains(t, err, "(line 1): the name of column 1, \"caf\\xe9\": its bytes are not UTF-8: convert the file")
	_, err = Read(strings.NewReader("a,b\nx,y\ncaf\xe9,2\n"), Format{Texts: true})
	require.ErrorContains(t, err, "its bytes are not UTF-8: convert the file")
	require.ErrorContains(t, err, "line 3")
}
