package nn_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func normal(seed uint64, dims ...int) *tensors.Tensor {
	random := rand.New(rand.NewPCG(seed, 0))
	flat := make([]float32, shapes.Make(dtypes.Float32, dims...).Size())
	for i := range flat {
		flat[i] = float32(random.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(flat, dims...)
}

// call builds a graph of one input at the scope of a fresh store, and returns its outputs.
func call(t *testing.T, x *tensors.Tensor, build func(s *model.Scope, x *node) []*node) [][]float32 {
	t.Helper()
	return callOn(t, plugintest.CPU(t), x, build)
}

func callOn(t *testing.T, r *xla.Runtime, x *tensors.Tensor, build func(s *model.Scope, x *node) []*node) [][]float32 {
	t.Helper()
	store := model.NewStore()
	require.NoError(t, store.SetRNGStateFromSeed(1))
	exec, err := model.NewExec(r, store, func(s *model.Scope, xs []*node) []*node { return build(s, xs[0]) })
	require.NoError(t, err)
	outputs, err := exec.Call(x)
	require.NoError(t, err)
	var flat [][]float32
	for _, o := range outputs {
		flat = append(flat, tensors.MustCopyFlatData[float32](o))
	}
	return flat
}

func places(x *node, from, to int) *node {
	return graph.Slice(x, graph.AxisRange(), graph.AxisRange(from, to))
}
