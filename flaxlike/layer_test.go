package flaxlike_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

func squared(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) }

func leftAndRight(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
	return map[string]*graph.Node{"a": nn.Dense{Units: 2}.Apply(scope.In("a"), input("left")), "b": scaled{2, []int{3}}.Apply(scope.In("b"), input("right"))}
}

// What Open makes of a file computes the same bits as the model that was saved, whatever layers it has.
func TestOpen_everyLayer(t *testing.T) {
	numbers := func(dims ...int) data.Field {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i*7%11)/5 - 1
		}
		return data.X(x, dims...)
	}
	named := func(name string, f data.Field) data.Field { f.Name = name; return f }
	words := data.X([]int32{1, 2, 3, 4, 0, 1, 2, 0, 0, 0}, 2, 5)
	for name, row := range map[string]struct {
		network nn.Layer
		fields  []data.Field
		options []flaxlike.Option
	}{
		"images": {nn.Sequential{nn.Conv{Channels: 4, Window: []int{3}}, nn.MaxPool{Window: 2}, nn.BatchNorm{}, nn.Conv{Channels: 4, Window: []int{3, 2}, Strides: []int{2}, Kernel: nn.Initial("he_normal"), NoBias: true},
			nn.GroupNorm{Groups: 2}, nn.Residual{nn.L2{Rate: 0.1, Layers: []nn.Layer{nn.Dense{Units: 4}}}, nn.Activation("gelu")}, nn.MeanPool{Window: 2}, nn.Named{Name: "last", Layer: nn.Sequential{nn.Reshape{-1}, nn.Dropout{Rate: 0.5},
				nn.Func(squared), &scaled{0.5, []int{3}}}}}, []data.Field{numbers(2, 8, 8, 2)}, []flaxlike.Option{flaxlike.WithLayer("scaled", &scaled{}), flaxlike.WithLayer("squared", nn.Func(squared))}},
		"convolutions": {nn.Sequential{nn.DepthwiseConv{Window: []int{3}}, nn.SeparableConv{Channels: 4, Window: []int{3}}, nn.ConvTranspose{Channels: 3, Window: []int{3}, Strides: []int{2}},
			nn.Conv{Channels: 4, Window: []int{2}, Strides: []int{2}, Dilation: []int{2}, Groups: 1}, nn.DepthwiseConv{Window: []int{3}, Multiplier: 2, Strides: []int{2}, Valid: true},
			nn.SeparableConv{Channels: 3, Window: []int{1, 2}, Depthwise: nn.Initial("he_normal"), Pointwise: nn.Initial("orthogonal")},
			nn.ConvTranspose{Channels: 2, Window: []int{2}, Strides: []int{3}, OutputPadding: []int{0}, Valid: true}}, []data.Field{numbers(2, 8, 8, 2)}, nil},
		"windows": {nn.WindowScale{Of: 1, Layers: []nn.Layer{nn.LSTM{Units: 3, Last: true}, nn.Dense{Units: 2}}}, []data.Field{numbers(2, 8, 2)}, nil},
		"causal":  {nn.Conv{Channels: 2, Window: []int{3}, Dilation: []int{2}, Causal: true}, []data.Field{numbers(2, 8, 2)}, nil},
		"words": {nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 4, Padding: new(0), Initial: nn.RandomNormal(0.3)}, nn.Positions{Length: 6},
			nn.Residual{nn.LayerNorm{}, nn.Attention{Heads: 2, Width: 2, Causal: true}}, nn.Attention{Heads: 2, KeyHeads: 1, Rotary: 1e4}, nn.LSTM{Units: 3, Bidirectional: true, Layers: 2}, nn.RMSNorm{},
			nn.TimeDistributed{Layer: nn.Dense{Units: 4}}, nn.SimpleRNN{Units: 3}, nn.GRU{Units: 3, Last: true}, nn.Dense{Units: 2}}, []data.Field{words}, nil},
		"mean of words": {nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 4}, nn.Attention{Heads: 2, Width: 2}, nn.SimpleRNN{Units: 2, Last: true}, nn.Flatten{}}, []data.Field{words}, nil},
		"two heads":     {flaxlike.Functional(leftAndRight), []data.Field{named("left", numbers(2, 2)), named("right", numbers(2, 3))}, []flaxlike.Option{flaxlike.WithLayer("leftAndRight", flaxlike.Functional(leftAndRight))}},
		"policy":        {nn.Sequential{nn.GlobalMeanPool{}, nn.Dense{Units: 3}}, []data.Field{numbers(2, 4, 2)}, nil},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		var options []flaxlike.Option
		if name == "policy" {
			options = append(options, flaxlike.WithPolicy(optim.MixedBFloat16()))
		}
		set, m := must.M1(data.New(row.fields...)), newModel(t, row.network, append(options, flaxlike.WithSeed(3), flaxlike.WithBatchSize(2))...)
		want, err := m.Predict(t.Context(), set)
		require.NoError(t, err, name)
		require.NoError(t, m.Save(path), name)
		again, err := opened(t, path, row.options...)
		require.NoError(t, err, name)
		got, err := again.Predict(t.Context(), set)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		require.Equal(t, fmt.Sprint(m.Summary().Layers), fmt.Sprint(again.Summary().Layers), name)
		other := filepath.Join(t.TempDir(), "again.safetensors")
		require.NoError(t, again.Save(other), name)
		require.Equal(t, must.M1(os.ReadFile(path)), must.M1(os.ReadFile(other)), name)
		if len(row.options) > 0 {
			_, err = opened(t, path)
			require.ErrorContains(t, err, "give Open WithLayer(", name)
		}
	}
}
