package parquet

import (
	"os"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

func FuzzRead(f *testing.F) {
	f.Add(written(f, rowsOf(4)))
	f.Add(newHostile(format.Int32, 3, format.RLEDictionary, []byte{0, 6}).dictionary(1, make([]byte, 4)).file(f))
	f.Add(newHostile(format.Int32, 3, format.Plain, make([]byte, 12)).file(f))
	for _, name := range []string{"default", "pages2", "gzip", "delta"} {
		file, err := os.ReadFile("testdata/" + name + ".parquet")
		require.NoError(f, err)
		f.Add(file)
	}
	pyarrow := Format{Limit: 4 << 20, Fields: []Field{{Name: "x", Columns: []string{"f32", "i8", "bool", "i64", "null"}, Fill: "0"}, {Name: "text", Columns: []string{"text"}, Classes: []string{"cat", "dog", "eel"}},
		{Name: "list", Columns: []string{"list"}}, {Name: "raw", Columns: []string{"raw"}, DType: "uint8"}}}
	written := all
	written.Limit = 4 << 20
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, form := range []Format{{Limit: 4 << 20}, {Limit: 4 << 20, Texts: true}, written, pyarrow} {
			set, err := open(file, form)
			if (set == nil) == (err == nil) {
				t.Fatalf("a set %v and the error %v", set, err)
			}
			if err != nil {
				continue
			}
			for _, field := range set.Fields() {
				if err := field.Array.Check(); err != nil && field.Array.DType() != "string" {
					t.Fatal(err)
				}
			}
		}
	})
}
