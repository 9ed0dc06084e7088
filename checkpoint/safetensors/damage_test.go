package safetensors_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// sums are the checksums of a file as a manifest would keep them: of the header, and of each tensor by name.
func sums(file []byte) (map[string]safetensors.Checksum, error) {
	r, err := open(file)
	if err != nil {
		return nil, err
	}
	all := map[string]safetensors.Checksum{"header": r.HeaderChecksum()}
	for tensor := range r.Tensors() {
		sum, err := r.Copy(io.Discard, tensor.Name)
		if err != nil {
			return nil, err
		}
		all["tensor "+tensor.Name] = sum
	}
	return all, nil
}

// Every byte of a file changed to every other value. The header's checks find most; a name or a type that has become
// another valid one, and elements, are found by their sums.
//
//lazo:norace
func TestF03_EveryByteFlipped(t *testing.T) {
	file := sample(t)
	want, err := sums(file)
	require.NoError(t, err)
	refused, bySum := 0, 0
	for i := range file {
		for flip := 1; flip < 256; flip++ {
			damaged := slices.Clone(file)
			damaged[i] ^= byte(flip)
			got, err := sums(damaged)
			if err != nil {
				require.ErrorAs(t, err, new(*safetensors.FormatError), "byte %d becomes 0x%02x", i, damaged[i])
				refused++
				continue
			}
			require.NotEqual(t, want, got, "byte %d becomes 0x%02x", i, damaged[i])
			bySum++
		}
	}
	t.Logf("%d of %d flips found: %d by the header's checks, %d by a checksum", refused+bySum, 255*len(file), refused, bySum)
}

func TestF04_EveryLength(t *testing.T) {
	file := sample(t)
	for n := range len(file) {
		_, err := open(file[:n])
		require.ErrorAs(t, err, new(*safetensors.FormatError), "%d of %d bytes", n, len(file))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d of %d bytes", n, len(file))
		// The file shrinks between its size being asked and its being read.
		r, err := safetensors.NewReader(bytes.NewReader(file[:n]), int64(len(file)), safetensors.Limits{})
		if err == nil {
			for tensor := range r.Tensors() {
				if _, _, err = r.Read(tensor.Name); err != nil {
					break
				}
			}
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	for _, more := range [][]byte{{0}, {' '}, file} {
		_, err := open(slices.Concat(file, more))
		require.ErrorAs(t, err, new(*safetensors.FormatError))
	}
	t.Logf("%d of %d shorter and 3 of 3 longer files are refused", len(file), len(file))
}

// Two tensors of one length change places.
func TestF04_SwappedTensors(t *testing.T) {
	tensor := func(name string, data ...byte) content {
		return content{safetensors.Tensor{Name: name, DType: safetensors.U8, Dims: []int{2}}, data}
	}
	one, err := sums(write(t, []content{tensor("a", 1, 2), tensor("b", 3, 4)}, nil))
	require.NoError(t, err)
	for name, other := range map[string][]content{
		"data":  {tensor("a", 3, 4), tensor("b", 1, 2)},
		"names": {tensor("b", 1, 2), tensor("a", 3, 4)},
		"both":  {tensor("b", 3, 4), tensor("a", 1, 2)}, // the same content in another order: the header tells
	} {
		two, err := sums(write(t, other, nil))
		require.NoError(t, err)
		require.NotEqual(t, one, two, name)
	}
}
