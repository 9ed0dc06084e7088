package safetensors_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// FuzzReadHeader passes arbitrary bytes to the reader. An accepted header must equal what encoding/json reads, fill the
// file, and survive writing and reading unchanged.
func FuzzReadHeader(f *testing.F) {
	f.Add(sample(f))
	for _, c := range hostile {
		if len(c.file) < 1000 {
			f.Add(c.file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var r *safetensors.Reader
		var err error
		taken := allocated(func() { r, err = open(file) })
		require.LessOrEqual(t, taken, 2*int64(len(file))+slack)
		if err != nil {
			require.ErrorAs(t, err, new(*safetensors.FormatError))
			return
		}
		all, metadata, err := read(file)
		require.NoError(t, err)
		checkAgainstJSON(t, file, all, metadata)

		got, gotMetadata, err := read(write(t, all, metadata))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(all, got, same...))
		require.Equal(t, metadata, gotMetadata)
		for _, c := range all {
			tensor, found := r.Tensor(c.Name)
			require.True(t, found)
			require.Empty(t, cmp.Diff(c.Tensor, tensor, same...))
		}
	})
}

func checkAgainstJSON(t *testing.T, file []byte, all []content, metadata map[string]string) {
	size := 0
	for _, c := range all {
		size += len(c.data)
	}
	header := file[8 : len(file)-size]
	require.True(t, bytes.HasSuffix(file, bytes.Join(datas(all), nil)), "the tensors fill the file in their order")
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(header, &members))
	if text, has := members["__metadata__"]; has {
		var want map[string]string
		require.NoError(t, json.Unmarshal(text, &want))
		require.Equal(t, want, metadata)
		delete(members, "__metadata__")
	}
	require.Len(t, all, len(members))
	for _, c := range all {
		var want struct {
			DType   string  `json:"dtype"`
			Shape   []int   `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		require.NoError(t, json.Unmarshal(members[c.Name], &want))
		require.Equal(t, want.DType, c.DType.String())
		require.Equal(t, want.Shape, c.Dims)
		require.Equal(t, want.Offsets[1]-want.Offsets[0], int64(len(c.data)))
	}
}

func datas(all []content) (data [][]byte) {
	for _, c := range all {
		data = append(data, c.data)
	}
	return data
}
