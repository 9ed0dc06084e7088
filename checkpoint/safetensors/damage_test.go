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
