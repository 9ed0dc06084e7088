package main_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Each tensor that differs has a line with its type and dims, and floats their number and largest distance. The exit
// status is 1 then, as of diff.
func TestCkptDiff(t *testing.T) {
	dir := checkpoints(t)
	diff := run(t, "ckpt", "diff", dir, "10", "30")
	require.Equal(t, result{1, "\"/dense/weights\"  F32[2]  1 of 2 differ, by at most 2\n\"/new\"            only in step 30: U8[1]\n1 of 3 tensors are the same\n", ""}, diff)
	require.Equal(t, result{0, "2 of 2 tensors are the same\n", ""}, run(t, "ckpt", "diff", dir, "10", "10", "--other", dir))
	require.Contains(t, run(t, "ckpt", "diff", dir, "10", "7").stderr, "no checkpoint of this step")
	require.Equal(t, 2, run(t, "ckpt", "diff", dir, "10", "20", "--other", filepath.Join(dir, "none")).code)

	other := filepath.Join(t.TempDir(), "other")
	f, err := checkpoint.Open(other, checkpoint.Options{})
	require.NoError(t, err)
	for step, tensors := range map[checkpoint.Step][]checkpoint.Tensor{
		1: {{Name: "double", DType: safetensors.F64, Dims: []int{3}, Data: safetensors.Bytes([]float64{1, 2, 3})},
			{Name: "only", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}}, {Name: "same", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}},
			{Name: "shape", DType: safetensors.F32, Dims: []int{2}, Data: safetensors.Bytes([]float32{1, 2})},
			{Name: "type", DType: safetensors.I64, Dims: []int{1}, Data: safetensors.Bytes([]int64{1})}, {Name: "whole", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}}},
		2: {{Name: "double", DType: safetensors.F64, Dims: []int{3}, Data: safetensors.Bytes([]float64{1, 2.5, 1})},
			{Name: "same", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}},
			{Name: "shape", DType: safetensors.F32, Dims: []int{2, 1}, Data: safetensors.Bytes([]float32{1, 2})},
			{Name: "type", DType: safetensors.F64, Dims: []int{1}, Data: safetensors.Bytes([]float64{1})}, {Name: "whole", DType: safetensors.U8, Dims: []int{1}, Data: []byte{2}}},
	} {
		require.NoError(t, f.Save(t.Context(), step, checkpoint.Content{Tensors: tensors}))
	}
	require.NoError(t, f.Close())
	require.Equal(t, result{1, "\"double\"  F64[3]  2 of 3 differ, by at most 2\n\"only\"    only in step 1: U8[1]\n\"shape\"   F32[2]  F32[2 1]\n" +
		"\"type\"    I64[1]  F64[1]\n\"whole\"   U8[1]   differs\n1 of 6 tensors are the same\n", ""}, run(t, "ckpt", "diff", other, "1", "2"))
}
