package parquet

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// mixed has each kind of column that blocks take in a way of its own.
type mixed struct {
	Float   float32  `parquet:"float"`
	Floats  float32  `parquet:"floats,dict"`
	Double  float64  `parquet:"double"`
	Doubles *float64 `parquet:"doubles,optional,dict"`
	Int     int32    `parquet:"int"`
	Ints    int64    `parquet:"ints,dict"`
	Delta   int64    `parquet:"delta,delta"`
	Small   uint32   `parquet:"small"`
	Split   float32  `parquet:"split,split"`
	Null    *int64   `parquet:"null,optional"`
	Flag    bool     `parquet:"flag"`
	Word    string   `parquet:"word,dict"`
	Other   string   `parquet:"other"`
}

var words = []string{"ape", "bat", "cow"}

func mixedRows(r *rand.Rand, n int, gaps float64) []mixed {
	all := make([]mixed, n)
	for i := range all {
		v := r.NormFloat64()
		all[i] = mixed{
			float32(v), float32(r.IntN(100)) / 8, v * 3, &v, r.Int32() - 1<<30, r.Int64N(50) - 25, r.Int64N(1e6), r.Uint32(),
			float32(v) / 7, new(int64), r.IntN(2) == 0, words[r.IntN(3)], words[r.IntN(3)],
		}
		*all[i].Null = r.Int64N(9)
		if r.Float64() < gaps {
			all[i].Null, all[i].Doubles = nil, nil
		}
		if r.Float64() < gaps {
			all[i].Double = math.NaN()
		}
	}
	return all
}

// Rows that are taken in blocks are those that are taken one by one, as batches of one are; so are errors.
func TestBlocks_areTheRowsOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	blocks, failed := 0, 0
	for round := range 60 {
		gaps := []float64{0, 0.001, 0.2}[round%3]
		all := mixedRows(r, 1+r.IntN(4000), gaps)
		fill := ""
		if gaps > 0 {
			fill = "3"
		}
		format := Format{Limit: 1 << 30, Fields: []Field{
			{Name: "x", Columns: []string{"float", "floats", "null", "doubles", "ints", "delta", "int"}, Fill: fill},
			{Name: "exact", Columns: []string{"double", "split"}, DType: "float64", Fill: fill},
			{Name: "small", Columns: []string{"small"}, DType: "int64"},
			{Name: "flag", Columns: []string{"flag"}, DType: "bool"},
			{Name: "word", Columns: []string{"word"}, Classes: words},
			{Name: "other", Columns: []string{"other"}, Classes: words},
		}}
		at := r.IntN(len(all))
		switch round % 5 { // something that cannot be taken
		case 1:
			all[at].Word = "dog"
		case 2:
			all[at].Other = "dog"
		case 3:
			if fill == "" {
				all[at].Float = float32(math.Inf(1))
			}
		case 4:
			if fill == "" {
				all[at].Doubles = nil
			}
		}
		path := filepath.Join(t.TempDir(), "rows.parquet")
		file := written(t, all, pq.PageBufferSize(1+r.IntN(20_000)), pq.MaxRowsPerRowGroup(int64(1+r.IntN(5000))))
		require.NoError(t, os.WriteFile(path, file, 0o600))
		want, wantErr := data.Collect(Stream(path, format, 1), len(all))
		got, err := data.Collect(Stream(path, format, 1+r.IntN(3000)), len(all))
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			_, err = Open(path, format)
			require.ErrorContains(t, err, wantErr.Error()[len("parquet: stream: "):])
			failed++
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want.Fields(), got.Fields())
		got, err = Open(path, format)
		require.NoError(t, err)
		require.Equal(t, want.Fields(), got.Fields())
		blocks++
	}
	require.Greater(t, blocks, 20)
	require.Greater(t, failed, 20)
}
