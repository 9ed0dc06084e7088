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
