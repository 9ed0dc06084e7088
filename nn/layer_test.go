package nn_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// A mistake is an error that says what is expected.
func TestMistakes(t *testing.T) {
	of := func(g *graph.Graph, dims ...int) *node { return graph.Zeros(g, shapes.Make(dtypes.Float32, dims...)) }
	for want, build := range map[string]func(s *model.Scope, g *graph.Graph){
		"nn: Dense in /: Units is 0, expected at least 1":                                     func(s *model.Scope, g *graph.Graph) { nn.Dense{}.Apply(s, of(g, 2, 3)) },
		`sub-scope "kernel" already visited from "/", use Shared() if this is intended`:       func(s *model.Scope, g *graph.Graph) { d := nn.Dense{Units: 2}; d.Apply(s, d.Apply(s, of(g, 2, 2))) },
		"nn: Conv in /: Window is [], expected one number, or one for each of 2 spatial axes": func(s *model.Scope, g *graph.Graph) { nn.Conv{Channels: 1}.Apply(s, of(g, 1, 2, 2, 1)) },
		"nn: Conv in /: Padding is [1] without Valid, expected Valid": func(s *model.Scope, g *graph.Graph) {
			nn.Conv{Channels: 1, Window: []int{1}, Padding: []int{1}}.Apply(s, of(g, 1, 2, 2, 1))
		},
		"nn: Conv in /: Padding is -1, expected at least 0": func(s *model.Scope, g *graph.Graph) {
			nn.Conv{Channels: 1, Window: []int{1}, Valid: true, Padding: []int{-1}}.Apply(s, of(g, 1, 2, 2, 1))
		},
		"nn: WindowScale in /: the input is (Float32)[2, 3], expected windows [batch, time, columns]": func(s *model.Scope, g *graph.Graph) { nn.WindowScale{}.Apply(s, of(g, 2, 3)) },
		"nn: WindowScale in /: Of is 2, and the input (Float32)[4, 3, 2] has 2 columns":               func(s *model.Scope, g *graph.Graph) { nn.WindowScale{Of: 2}.Apply(s, of(g, 4, 3, 2)) },
		"nn: WindowScale in /: the input has a mask": func(s *model.Scope, g *graph.Graph) {
			nn.WindowScale{}.Apply(s, nn.Masked(of(g, 4, 3, 2), graph.Const(g, []int32{1, 2, 3, 3})))
		},
		"nn: WindowScale in /: the layers return (Float32)[12, 2], expected numbers for each example, [4, …]": func(s *model.Scope, g *graph.Graph) {
			nn.WindowScale{Layers: []nn.Layer{nn.Func(func(_ *model.Scope, x *node) *node { return graph.Reshape(x, 12, 2) })}}.Apply(s, of(g, 4, 3, 2))
		},
		"nn: GroupNorm in /: 32 groups of 6 channels, expected a divisor":                                 func(s *model.Scope, g *graph.Graph) { nn.GroupNorm{}.Apply(s, of(g, 2, 6)) },
		"nn: Embedding in /: the input is (Float32)[2], expected whole numbers from 0 to 3":               func(s *model.Scope, g *graph.Graph) { nn.Embedding{Vocabulary: 4, Width: 2}.Apply(s, of(g, 2)) },
		"nn: LSTM in /: the input is (Float32)[2, 3], expected floating-point numbers [batch, places, n]": func(s *model.Scope, g *graph.Graph) { nn.LSTM{Units: 2}.Apply(s, of(g, 2, 3)) },
		"nn: GRU in /: Initial has 2 states, expected 1": func(s *model.Scope, g *graph.Graph) {
			nn.GRU{Units: 2, Initial: []*node{of(g, 1, 2), of(g, 1, 2)}}.Apply(s, of(g, 1, 2, 3))
		},
		"nn: SimpleRNN in /: the mask is (Float32)[1, 2], expected lengths, whole numbers [1], or bool [1, 2]": func(s *model.Scope, g *graph.Graph) {
			nn.SimpleRNN{Units: 2, Mask: of(g, 1, 2)}.Apply(s, of(g, 1, 2, 3))
		},
		"nn: LSTM in /: the rate of dropout is 1, expected a share from 0 to below 1": func(s *model.Scope, g *graph.Graph) { nn.LSTM{Units: 2, Dropout: 1}.Apply(s, of(g, 1, 2, 3)) },
		"nn: Attention in /: the input is (Float32)[1, 2, 3], expected a multiple of 2 heads in its last axis, or a Width": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 2}.Apply(s, of(g, 1, 2, 3))
		},
		"nn: Attention in /: 2 heads of keys for 3 of queries, expected a divisor": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 3, KeyHeads: 2}.Apply(s, of(g, 1, 2, 3))
		},
		"nn: Attention in /: Decode returns the same as Apply only with Causal: set Causal": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1}.Decode(s, of(g, 1, 1, 2), nn.Cache{})
		},
		"the cache has keys (Float32)[1, 4, 1, 2] and values (Float32)[1, 4, 1, 2] for the input (Float32)[1, 1, 2], expected (Float32)[1, length, 2] for both": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Causal: true}.Decode(s, of(g, 1, 1, 2), nn.Cache{Key: of(g, 1, 4, 1, 2), Value: of(g, 1, 4, 1, 2)})
		},
		"the input has 3 places, the cache's length is 2": func(s *model.Scope, g *graph.Graph) {
			a, x := nn.Attention{Heads: 1, Causal: true}, of(g, 1, 3, 2)
			a.Decode(s, x, a.NewCache(s, x, 2))
		},
		"the cache has the Position (Int32)[3], expected an int32 scalar or (Int32)[2]": func(s *model.Scope, g *graph.Graph) {
			a, x := nn.Attention{Heads: 1, Causal: true}, of(g, 2, 1, 2)
			cache := a.NewCache(s, x, 2)
			cache.Position = graph.Const(g, []int32{0, 0, 0})
			a.Decode(s, x, cache)
		},
		"nn: Attention in /: 1 Rates and the Rotary 0 for heads of 4, expected half as many Rates, and not Rotary": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Rates: []float64{1}}.Apply(s, of(g, 1, 2, 4))
		},
		"nn: Attention in /: the Window is 2 and Causal false, expected at least 1 with Causal, or 0": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Window: 2}.Apply(s, of(g, 1, 2, 4))
		},
		"nn: Attention in /: the Scale is -1 and the Cap 0, expected finite numbers above 0": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Scale: -1}.Apply(s, of(g, 1, 2, 4))
		},
		"expected not Fused in Cross": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Fused: true}.Cross(s, of(g, 1, 1, 2), of(g, 1, 1, 2))
		},
		"expected none of them in Cross": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Causal: true}.Cross(s, of(g, 1, 1, 2), of(g, 1, 1, 2))
		},
	} {
		g := graph.NewGraph(plugintest.CPU(t), "mistakes")
		err := graphs.Catch(func() { build(model.NewStore().RootScope(), g) })
		g.Finalize()
		require.ErrorContains(t, err, want)
	}
}
