package nn_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// Each Dense below the scope has an addition, also in Attention and in each use of a shared one. A Dense of the added
// layer has none, nor one outside. The sum is computed in the added layer's dtype.
func TestAdditions(t *testing.T) {
	var asked []string
	plain := nn.Dense{Units: 3, NoBias: true, Kernel: nn.Constant(1)}
	outputs := call(t, normal(1, 2, 5, 3), func(s *model.Scope, x *node) []*node {
		nn.Additions(s.In("a"), x.Graph(), func(at *model.Scope) nn.Layer {
			if asked = append(asked, at.Scope()); at.Scope() == "/a/attention/key" {
				return nil
			}
			return nn.Func(func(s *model.Scope, x *node) *node {
				units := x.Shape().Dimensions[x.Rank()-1] // the Denses here are square
				y := nn.Dense{Units: units, Kernel: nn.Constant(0), Bias: nn.Constant(0x1p-8)}.Apply(s.In("other"), graph.ConvertDType(x, dtypes.Float32))
				require.Equal(t, dtypes.Float32, y.DType())
				return y
			})
		})
		inside := s.Shared("a")
		once := plain.Apply(inside.In("dense"), x)
		again := plain.Apply(inside.At("dense"), x)
		outside := plain.Apply(s.In("b"), x)
		small := graph.ConvertDType(graph.OnesLike(x), dtypes.BFloat16)
		rounded := plain.Apply(inside.In("rounded"), small)
		require.Equal(t, dtypes.BFloat16, rounded.DType())
		attention := nn.Attention{Heads: 1}.Apply(inside.In("attention"), x)
		return []*node{graph.Sub(once, outside), graph.Sub(again, outside), graph.ConvertDType(rounded, dtypes.Float32), attention}
	})
	require.Equal(t, []string{"/a/dense", "/a/dense", "/a/rounded", "/a/attention/query", "/a/attention/key", "/a/attention/value", "/a/attention/output"}, asked)
	for i, x := range outputs[0] {
		require.InDelta(t, 0x1p-8, x, 1e-6)
		require.InDelta(t, 0x1p-8, outputs[1][i], 1e-6)
		require.InDelta(t, 3, outputs[2][i], 0.01)
	}
	store := model.NewStore()
	exec, err := model.NewExec(plugintest.CPU(t), store, func(s *model.Scope, x *node) *node {
		nn.Additions(s, x.Graph(), func(*model.Scope) nn.Layer { return nn.Func(func(_ *model.Scope, x *node) *node { return x }) })
		return nn.Dense{Units: 4}.Apply(s, x)
	})
	require.NoError(t, err)
	_, err = exec.Call(normal(1, 2, 3))
	require.ErrorContains(t, err, "nn: Dense in /: the layer of Additions returns (Float32)[2, 3] for (Float32)[2, 3], expected the output's shape (Float32)[2, 4]")
}

// A layer below the scope has the computed weight in place of a variable, in the dtype of its input. Others have their
// variables.
func TestWeights(t *testing.T) {
	var asked []string
	layer := nn.Dense{Units: 2, Kernel: nn.Constant(1), Bias: nn.Constant(0)}
	build := func(s *model.Scope, x *node, units int) []*node {
		nn.Weights(s.In("a"), x.Graph(), func(at *model.Scope, name string) *node {
			if asked = append(asked, at.Scope()+" "+name); name != "kernel" {
				return nil
			}
			return graph.MulScalar(graph.Ones(x.Graph(), shapes.Make(dtypes.Float32, 3, units)), 2)
		})
		small := layer.Apply(s.Shared("a").In("small"), graph.ConvertDType(x, dtypes.BFloat16))
		require.Equal(t, dtypes.BFloat16, small.DType())
		return []*node{layer.Apply(s.Shared("a").In("dense"), x), layer.Apply(s.In("b"), x), graph.ConvertDType(small, dtypes.Float32)}
	}
	outputs := call(t, normal(1, 5, 3), func(s *model.Scope, x *node) []*node {
		out := build(s, x, 2)
		require.Nil(t, s.Store().GetVariable("/a/dense/kernel"))
		require.NotNil(t, s.Store().GetVariable("/b/kernel"))
		return out
	})
	require.Equal(t, []string{"/a/small kernel", "/a/small bias", "/a/dense kernel", "/a/dense bias"}, asked)
	for i, x := range outputs[1] {
		require.InDelta(t, 2*x, outputs[0][i], 1e-6)
		require.InDelta(t, 2*x, outputs[2][i], 0.1)
	}
	exec, err := model.NewExec(plugintest.CPU(t), model.NewStore(), func(s *model.Scope, x *node) *node { return build(s, x, 4)[0] })
	require.NoError(t, err)
	_, err = exec.Call(normal(1, 5, 3))
	require.ErrorContains(t, err, "Weights returns (Float32)[3, 4] for kernel, expected the shape (BFloat16)[3, 2]")
}
