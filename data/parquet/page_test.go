package parquet

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
