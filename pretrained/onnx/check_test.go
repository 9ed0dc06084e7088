package onnx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained/onnx"
)

// Files with anything that would change numbers and is not implemented, or that are damaged, are errors that say where.
func TestOpen_refused(t *testing.T) {
	var all []struct {
		Model []byte
		Error string
	}
	read(t, "refusals.json.gz", &all)
	for _, row := range all {
		_, err := onnx.Open(t.Context(), written(t, row.Model), onnx.Options{})
		require.ErrorContains(t, err, row.Error)
		require.NotContains(t, err.Error(), "panic")
	}
	require.Len(t, all, 61)
}
