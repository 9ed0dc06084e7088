package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// XLA's count of a training step is near the bytes that its gradient needs.
func TestFootprints(t *testing.T) {
	small := gpt{layers: 4, width: 64, heads: 2, vocabulary: 128, places: 64}
	for _, f := range []footprint{mlpFootprint(128, 784, 512, 512, 10), lstmFootprint(32, 32), small.footprint(8, 4)} {
		bytes, err := f.compiled(t.Context(), plugintest.CPU(t))
		require.NoError(t, err)
		of := float64(bytes) / float64(f.least())
		t.Logf("%s: %d bytes, %.3f of the floor", f.name, bytes, of)
		require.Greater(t, of, 0.98, f.name)
		require.Less(t, of, 1.15, f.name)
	}
}
