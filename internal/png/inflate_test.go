package png

import (
	"bytes"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInflate_asZlib(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var f inflater
	for i := range 300 {
		want := source(r, r.IntN(3000))
		var packed bytes.Buffer
		z, err := zlib.NewWriterLevel(&packed, []int{zlib.NoCompression, zlib.BestSpeed, zlib.BestCompression, zlib.HuffmanOnly}[i%4])
		require.NoError(t, err)
		_, err = z.Write(want)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		got := make([]byte, len(want))
		require.True(t, f.inflate(packed.Bytes(), got))
		require.True(t, bytes.Equal(want, got))
		require.False(t, f.inflate(packed.Bytes(), make([]byte, len(want)+1)), "too few bytes")
		if len(want) > 0 {
			require.False(t, f.inflate(packed.Bytes(), got[1:]), "too many bytes")
		}
		require.False(t, f.inflate(append(bytes.Clone(packed.Bytes()), 0), got), "bytes behind the stream")
		require.False(t, f.inflate(packed.Bytes()[:packed.Len()-1], got), "a part of the checksum")
		damaged := bytes.Clone(packed.Bytes())
		damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		if f.inflate(damaged, got) { // a bit that zlib ignores too
			z, err := zlib.NewReader(bytes.NewReader(damaged))
			require.NoError(t, err)
			other, err := io.ReadAll(z)
			require.NoError(t, err)
			require.True(t, bytes.Equal(other, got))
		}
	}
}
