package nn_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// Pools drop the rest, as VALID. The global maximum is of the places that count, or 0. Conv pads as SAME of JAX, which
// GoMLX's PadSame does not at strides above 1.
func TestPools_padding(t *testing.T) {
	of := func(build func(*model.Scope, *graph.Node) *graph.Node, places ...float32) any {
		x := tensors.FromFlatDataAndDimensions(places, 1, len(places), 1)
		y, err := model.MustNewExec(plugintest.CPU(t), model.NewStore(), build).Call1(x)
		require.NoError(t, err)
		return tensors.MustCopyFlatData[float32](y)
	}
	pool := func(l nn.Layer) func(*model.Scope, *graph.Node) *graph.Node { return l.Apply }
	require.Equal(t, []float32{2, 4}, of(pool(nn.MaxPool{Window: 2}), 1, 2, 3, 4, 5))
	require.Equal(t, []float32{1.5, 3.5}, of(pool(nn.MeanPool{Window: 2}), 1, 2, 3, 4, 5))
	masked := func(mask ...bool) func(*model.Scope, *graph.Node) *graph.Node {
		return func(s *model.Scope, x *graph.Node) *graph.Node {
			return nn.GlobalMaxPool{}.Apply(s, nn.Masked(x, graph.Const(x.Graph(), [][]bool{mask})))
		}
	}
	require.Equal(t, []float32{-2}, of(masked(false, true, true), 5, -3, -2))
	require.Equal(t, []float32{0}, of(masked(false, false), 5, -3))
	conv := nn.Conv{Channels: 1, Window: []int{3}, Strides: []int{2}, NoBias: true, Kernel: graph.Ones}
	require.Equal(t, []float32{6, 12, 11}, of(pool(conv), 1, 2, 3, 4, 5, 6), "1+2+3, 3+4+5, 5+6")
	same := func(pad func(*graph.PoolBuilder) *graph.PoolBuilder) func(*model.Scope, *graph.Node) *graph.Node {
		return func(_ *model.Scope, x *graph.Node) *graph.Node {
			return pad(graph.MaxPool(x).Window(3).Strides(2)).Done()
		}
	}
	require.Equal(t, []float32{2, 4, 6}, of(same((*graph.PoolBuilder).PadSame), 1, 2, 3, 4, 5, 6), "the document of MaxPool says so")
	require.Equal(t, []float32{3, 5, 6}, of(same(func(b *graph.PoolBuilder) *graph.PoolBuilder { return b.PaddingPerDim([][2]int{{0, 1}}) }), 1, 2, 3, 4, 5, 6))
}
