package onnx_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained/onnx"
)

// Each operator computes as ONNX Runtime.
func TestOperators(t *testing.T) {
	var all []example
	read(t, "operators.json.gz", &all)
	worst := 0.0
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			text, err := base64.StdEncoding.DecodeString(e.Model)
			require.NoError(t, err)
			off := e.compare(t, written(t, text))
			require.Less(t, off, 1e-5)
			worst = max(worst, off)
		})
	}
	t.Logf("%d examples, the largest difference is %.2g", len(all), worst)
	_ = maps.Keys(onnx.Operators())
	_ = slices.Sort[[]int]
}
