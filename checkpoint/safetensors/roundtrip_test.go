package safetensors_test

import (
	"bytes"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

var same = []cmp.Option{cmp.AllowUnexported(content{}), cmpopts.EquateEmpty()}

// All ways to read a tensor give the same bytes, and reader and writer the same sums.
func TestWaysToReadAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := tensors().Draw(t, "tensors")
		var out bytes.Buffer
		var list []safetensors.Tensor
		for _, c := range given {
			list = append(list, c.Tensor)
		}
		w, err := safetensors.NewWriter(&out, list, nil)
		require.NoError(t, err)
		sums := map[string]safetensors.Checksum{}
		for _, c := range given {
			sums[c.Name], err = w.Write(c.Name, c.data)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())

		r, err := open(out.Bytes())
		require.NoError(t, err)
		require.Equal(t, w.HeaderChecksum(), r.HeaderChecksum())
		require.Equal(t, len(given), r.Len())
		for _, c := range given {
			tensor, found := r.Tensor(c.Name)
			require.True(t, found)
			require.Empty(t, cmp.Diff(c.Tensor, tensor, cmpopts.EquateEmpty()))
			want := safetensors.Checksum(crc32.Checksum(c.data, crc32.MakeTable(crc32.Castagnoli)))
			require.Equal(t, want, sums[c.Name])

			data, sum, err := r.Read(c.Name)
			require.NoError(t, err)
			require.Equal(t, c.data, data)
			require.Equal(t, want, sum)

			into := make([]byte, len(c.data))
			sum, err = r.ReadInto(c.Name, into)
			require.NoError(t, err)
			require.Equal(t, c.data, into)
			require.Equal(t, want, sum)

			var copied bytes.Buffer
			sum, err = r.Copy(&copied, c.Name)
			require.NoError(t, err)
			require.Equal(t, c.data, append([]byte{}, copied.Bytes()...))
			require.Equal(t, want, sum)

			if len(c.Dims) == 0 || c.DType.Bits() < 8 {
				continue
			}
			from := rapid.IntRange(0, c.Dims[0]).Draw(t, "from")
			to := rapid.IntRange(from, c.Dims[0]).Draw(t, "to")
			rows, err := r.ReadRows(c.Name, from, to)
			require.NoError(t, err)
			row := len(c.data) / max(c.Dims[0], 1)
			require.Equal(t, c.data[from*row:to*row], rows)
		}
	})
}

// A tensor that is larger than the pieces in which it is written and read.
func TestLargeTensor(t *testing.T) {
	data := make([]byte, 3<<20+8)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	tensor := safetensors.Tensor{Name: "w", DType: safetensors.F64, Dims: []int{len(data) / 8}}
	file := write(t, []content{{tensor, data}}, nil)
	got, _, err := read(file)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, bytes.Equal(data, got[0].data))

	var out bytes.Buffer
	w, err := safetensors.NewWriter(&out, []safetensors.Tensor{tensor}, nil)
	require.NoError(t, err)
	sum, err := w.WriteFunc("w", func(to io.Writer) error {
		for piece := range slices.Chunk(data, 333_333) {
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.True(t, bytes.Equal(file, out.Bytes()))

	r, err := open(file)
	require.NoError(t, err)
	var copied bytes.Buffer
	sumRead, err := r.Copy(&copied, "w")
	require.NoError(t, err)
	require.Equal(t, sum, sumRead)
	require.True(t, bytes.Equal(data, copied.Bytes()))
}
