package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// Tests of behaviours that mutants found untested.

// A freed value is not reported as a closed runtime.
func TestRun_aFreedValue(t *testing.T) {
	r := plugintest.Uncached(t)
	p, err := r.Compile("plus one", plusOne)
	require.NoError(t, err)
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	require.NoError(t, x.Finalize())
	_, err = p.Run([]compute.Buffer{x}, nil)
	require.ErrorIs(t, err, xla.ErrClosed)
	require.NotContains(t, err.Error(), "the runtime is closed")
	require.NoError(t, p.Close())
}

// A block may have two steps.
func TestCompile_aBlockOfTwo(t *testing.T) {
	p := accumulating(t, plugintest.Uncached(t), 2)
	require.Equal(t, 2, p.Block())
	require.NoError(t, p.Close())
}
