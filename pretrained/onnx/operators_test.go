package onnx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained/onnx"
)

// Each operator that is implemented computes as ONNX Runtime.
func TestOperators(t *testing.T) {
	var all []example
	read(t, "operators.json.gz", &all)
	left, worst := onnx.Operators(), 0.0
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			off := e.compare(t, written(t, e.Model))
			require.Less(t, off, 1e-5)
			worst = max(worst, off)
		})
		for _, name := range e.Operators {
			delete(left, name)
		}
	}
	require.Empty(t, left)
	t.Logf("%d examples, the largest difference is %.2g", len(all), worst)
}

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
	require.Len(t, all, 38)
}
