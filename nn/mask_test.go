package nn_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

func TestMasked(t *testing.T) {
	out := call(t, normal(1, 2, 3, 4), func(s *model.Scope, x *node) []*node {
		require.Nil(t, nn.MaskOf(x))
		y := nn.Masked(x, graph.Const(x.Graph(), []int32{1, 3}))
		require.Nil(t, nn.MaskOf(x), "the mask is the output's")
		dense := nn.Dense{Units: 2}.Apply(s, y)
		require.Same(t, nn.MaskOf(y), nn.MaskOf(dense), "a layer passes the mask on")
		require.Nil(t, nn.MaskOf(nn.Masked(y, nil)))
		given := graph.Const(x.Graph(), [][]bool{{true, false, true}, {false, false, false}})
		require.Same(t, given, nn.MaskOf(nn.Masked(y, given)))
		return []*node{graph.ConvertDType(nn.MaskOf(y), x.DType()), graph.Sub(x, y)}
	})
	require.Equal(t, []float32{1, 0, 0, 1, 1, 1}, out[0])
	require.Equal(t, make([]float32, 24), out[1])
}

func TestMasked_refuses(t *testing.T) {
	for want, build := range map[string]func(x *node) *node{
		"nn: the mask is (Int32)[3], expected lengths, whole numbers [2], or bool [2, 3]": func(x *node) *node {
			return nn.Masked(x, graph.Const(x.Graph(), []int32{1, 2, 3}))
		},
		"nn: Masked: the input is (Float32)[24], expected [batch, places, …]": func(x *node) *node {
			return nn.Masked(graph.Reshape(x, -1), nil)
		},
	} {
		exec, err := model.NewExec(plugintest.Go(t), model.NewStore(), func(_ *model.Scope, x *node) *node { return build(x) })
		require.NoError(t, err)
		_, err = exec.Call(normal(1, 2, 3, 4))
		require.ErrorContains(t, err, want)
	}
}
