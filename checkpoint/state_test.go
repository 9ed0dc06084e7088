package checkpoint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// Two goroutines read the file: each tensor is in its place, and of several damages the first is reported.
//
//lazo:norace
func TestLargeFileIsReadWhole(t *testing.T) {
	const tensors, size = 12, 3 << 20
	var c checkpoint.Content
	for i := range tensors {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(i + j>>13)
		}
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: fmt.Sprintf("w%02d", i), DType: safetensors.U8, Dims: []int{size}, Data: data})
	}
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 1, c))
	got, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Tensors, tensors)
	for i, want := range c.Tensors {
		require.Equal(t, want.Name, got.Tensors[i].Name)
		require.True(t, string(want.Data) == string(got.Tensors[i].Data), want.Name)
	}
	path := dir(1) + "/state.safetensors"
	text := read(t, m, path)
	for _, wrong := range []int{11, 7, 6} {
		text[len(text)-size*(tensors-wrong)] ^= 1
		write(t, m, path, text)
		_, err := f.Newest(t.Context())
		var damaged *checkpoint.DamagedError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, fmt.Sprintf("w%02d", wrong), damaged.Tensor)
		require.Error(t, f.Verify(t.Context(), 1))
	}
}
