package xla_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// GoMLX's own executables compile nothing: they make initial values.
func TestOpenTopology_gomlx(t *testing.T) {
	r := plugintest.Described(t, 1)
	made, err := graph.CallOnce(r, func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, 0) }, tensors.FromValue([][]float32{{1, 2}, {3, 4}}))
	require.NoError(t, err)
	require.Equal(t, []int{2}, made.Shape().Dimensions)
	require.ErrorIs(t, made.ToLocal(), xla.ErrNotRun)
}
