package parquet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is taken where a page has no gaps, and leaves all as it was where it has.
func TestBlocks_areTaken(t *testing.T) {
	all := mixedRows(rand.New(rand.NewPCG(3, 4)), 2000, 0)
	file := written(t, all)
	format := Format{Fields: []Field{{Name: "x", Columns: []string{"float", "ints", "doubles"}}, {Name: "y", Columns: []string{"word"}, Classes: words}}}
	for _, broken := range []bool{false, true} {
		if broken {
			all[700].Float = float32(math.NaN())
			file = written(t, all)
		}
		r, err := openRows(bytes.NewReader(file), int64(len(file)), format)
		require.NoError(t, err)
		more, err := r.more()
		require.NoError(t, err)
		require.True(t, more)
		require.NoError(t, r.reserve(2000))
		require.Zero(t, r.block(2000), "no page is open")
		require.NoError(t, r.take())
		require.EqualValues(t, blockRows, r.block(2000))
		require.EqualValues(t, 1+blockRows, r.row)
		n := r.block(2000)
		if broken {
			require.Zero(t, n)
			require.EqualValues(t, 1+blockRows, r.row)
			require.Equal(t, 3*(1+blockRows), r.fields[0].sink.len())
			require.Equal(t, 1+blockRows, r.fields[1].sink.len())
			continue
		}
		require.EqualValues(t, blockRows, n)
	}
}
