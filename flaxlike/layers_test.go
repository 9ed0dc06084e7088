package flaxlike_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Each layer has the shape that its documentation says, and a gradient.
//
//lazo:norace
func TestLayers(t *testing.T) {
	for _, row := range []struct {
		name       string
		layer      nn.Layer
		in, out    []int // without the batch
		parameters int
		integers   bool
	}{
		{"dense", nn.Dense{Units: 5}, []int{3}, []int{5}, 20, false},
		{"conv", nn.Conv{Channels: 4, Window: []int{3}}, []int{6, 6, 2}, []int{6, 6, 4}, 3*3*2*4 + 4, false},
		{"conv of one axis", nn.Conv{Channels: 4, Window: []int{3}}, []int{6, 2}, []int{6, 4}, 3*2*4 + 4, false},
		{"conv, causal", nn.Conv{Channels: 4, Window: []int{3}, Causal: true}, []int{6, 2}, []int{6, 4}, 3*2*4 + 4, false},
		{"depthwise conv", nn.DepthwiseConv{Window: []int{3}}, []int{6, 6, 2}, []int{6, 6, 2}, 3*3*2 + 2, false},
		{"depthwise conv, strides", nn.DepthwiseConv{Window: []int{3}, Strides: []int{2}, Multiplier: 3}, []int{7, 2}, []int{4, 6}, 3*2*3 + 6, false},
		{"separable conv", nn.SeparableConv{Channels: 5, Window: []int{3}}, []int{6, 6, 2}, []int{6, 6, 5}, 3*3*2 + 2*5 + 5, false},
		{"conv transpose", nn.ConvTranspose{Channels: 5, Window: []int{3}, Strides: []int{2}}, []int{3, 4, 2}, []int{6, 8, 5}, 3*3*5*2 + 5, false},
		{"conv transpose of one axis", nn.ConvTranspose{Channels: 5, Window: []int{2}, Strides: []int{3}}, []int{4, 2}, []int{12, 5}, 2*5*2 + 5, false},
		{"max pool", nn.MaxPool{Window: 2}, []int{6, 6, 2}, []int{3, 3, 2}, 0, false},
		{"mean pool", nn.MeanPool{Window: 3}, []int{6, 6, 2}, []int{2, 2, 2}, 0, false},
		{"global mean", nn.GlobalMeanPool{}, []int{6, 6, 2}, []int{2}, 0, false},
		{"global max", nn.GlobalMaxPool{}, []int{6, 6, 2}, []int{2}, 0, false},
		{"flatten", nn.Flatten{}, []int{2, 3}, []int{6}, 0, false},
		{"reshape", nn.Reshape{3, -1}, []int{6}, []int{3, 2}, 0, false},
		{"activation", nn.Activation("gelu"), []int{3}, []int{3}, 0, false},
		{"softmax", nn.Activation("softmax"), []int{3}, []int{3}, 0, false},
		{"dropout", nn.Dropout{Rate: 0.3}, []int{3}, []int{3}, 0, false},
		{"batch norm", nn.BatchNorm{}, []int{4}, []int{4}, 8, false},
		{"layer norm", nn.LayerNorm{}, []int{4}, []int{4}, 8, false},
		{"rms norm", nn.RMSNorm{}, []int{4}, []int{4}, 4, false},
		{"embedding", nn.Embedding{Vocabulary: 7, Width: 3}, []int{5}, []int{5, 3}, 21, true},
		{"embedding of one", nn.Embedding{Vocabulary: 7, Width: 3}, []int{1}, []int{1, 3}, 21, true},
		{"attention", nn.Attention{Heads: 2, Width: 3}, []int{5, 4}, []int{5, 4}, 2*(4*6+6) + 4*6 + 6 + 6*4 + 4, false},
		{"causal attention", nn.Attention{Heads: 2, Width: 3, Causal: true}, []int{5, 4}, []int{5, 4}, 2*(4*6+6) + 4*6 + 6 + 6*4 + 4, false},
		{"position embedding", nn.Positions{Length: 7}, []int{5, 4}, []int{5, 4}, 7 * 4, false},
		{"time distributed", nn.TimeDistributed{Layer: nn.Sequential{nn.Conv{Channels: 3, Window: []int{3}}, nn.Flatten{}}}, []int{5, 4, 2}, []int{5, 12}, 3*2*3 + 3, false},
		{"gru", nn.GRU{Units: 3, Last: true}, []int{5, 4}, []int{3}, 3*3*4 + 3*3*3 + 2*3*3, false},
		{"lstm", nn.LSTM{Units: 3, Last: true}, []int{5, 4}, []int{3}, 4*3*4 + 4*3*3 + 4*3, false},
		{"simple rnn", nn.SimpleRNN{Units: 3, Last: true}, []int{5, 4}, []int{3}, 3*4 + 3*3 + 3, false},
		{"lstm of all places", nn.LSTM{Units: 3, Bidirectional: true}, []int{5, 4}, []int{5, 6}, 2 * (4*3*4 + 4*3*3 + 4*3), false},
		{"group norm", nn.GroupNorm{Groups: 2}, []int{3, 3, 4}, []int{3, 3, 4}, 8, false},
		{"residual", nn.Residual{nn.Dense{Units: 4}, nn.Activation("relu")}, []int{4}, []int{4}, 20, false},
		{"named", nn.Named{Name: "here", Layer: nn.Dense{Units: 2}}, []int{2}, []int{2}, 6, false},
		{"own", nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) }), []int{3}, []int{3}, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			const n = 4
			size := n
			for _, d := range row.in {
				size *= d
			}
			x := make([]float32, size)
			ints := make([]int32, size)
			for i := range x {
				x[i], ints[i] = float32(i%7)-3, int32(i%7)
			}
			flat := any(x)
			if row.integers {
				flat = ints
			}
			set, err := data.New(data.X(flat, append([]int{n}, row.in...)...), data.Y(make([]float32, n), n, 1))
			require.NoError(t, err)
			alone := newModel(t, row.layer)
			out, err := alone.Predict(t.Context(), set)
			require.NoError(t, err)
			require.Equal(t, append([]int{n}, row.out...), output(t, out).Dims)
			require.Equal(t, row.parameters, int(alone.Summary().Total(managed.Parameter).Size))

			m := newModel(t, nn.Sequential{nn.Named{Name: "first", Layer: row.layer}, nn.Flatten{}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(n), flaxlike.WithOptimizer("sgd"))
			h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3}))
			require.NoError(t, err)
			losses := series(t, h, "loss")
			require.NotEqual(t, losses[0], losses[2])
		})
	}
}

// The output of a causal layer at a position does not depend on later positions; that of a plain one does.
func TestCausalAttention(t *testing.T) {
	for _, row := range []struct {
		layer  nn.Layer
		causal bool
	}{{nn.Attention{Heads: 2, Width: 4, Causal: true}, true}, {nn.Attention{Heads: 2, Width: 4}, false}} {
		m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 8}, nn.Positions{Length: 4}, row.layer})
		out, err := m.Predict(t.Context(), must.M1(data.New(data.X([]int32{1, 2, 3, 4, 1, 2, 4, 0}, 2, 4))))
		require.NoError(t, err)
		v := output(t, out).Flat.([]float32) // [2, 4, 8]
		if row.causal {
			require.InDeltaSlice(t, v[:16], v[32:48], 1e-6)
		} else {
			require.NotEqual(t, v[:16], v[32:48])
		}
		require.NotEqual(t, v[16:24], v[48:56])
	}
}

func TestPositionEmbedding_tooLong(t *testing.T) {
	m := newModel(t, nn.Positions{Length: 4})
	_, err := m.Predict(t.Context(), must.M1(data.New(data.X(make([]float32, 2*5*3), 2, 5, 3))))
	require.ErrorContains(t, err, "Positions in /model: the input is (Float32)[2, 5, 3], expected at most 4 places in its second axis")
}

// half is a layer of a program's own, with a setting and layers in it.
type half struct{ Units int }

func (h half) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return nn.Sequential{nn.Dense{Units: h.Units}, nn.Dense{Units: h.Units}}.Apply(scope, graph.MulScalar(x, 0.5))
}

// Layers of package nn, functions, custom types and whole networks of one input are layers. Those of package nn get the
// mask.
func TestLayers_ofEveryKind(t *testing.T) {
	network := flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"o": nn.Dense{Units: 4}.Apply(scope, input("x"))}
	})
	masks := 0
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 4, Padding: new(0)}, network, &nn.Attention{Heads: 2},
		nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node {
			if nn.MaskOf(x) != nil {
				masks++
			}
			return x
		}), half{3}})
	set := must.M1(data.New(data.X([]int32{1, 2, 3, 4, 1, 2, 0, 0, 1, 2, 0, 0}, 3, 4)))
	require.NoError(t, m.Init(t.Context(), first(t, set, 3)))
	require.Positive(t, masks)
	var got []string
	for _, l := range m.Summary().Layers {
		got = append(got, fmt.Sprint(l.Name, " ", l.Kind, " ", l.Size))
	}
	require.Equal(t, []string{"0 Embedding 20", "1 TestLayers_ofEveryKind 20", "2 Attention 80", "3 TestLayers_ofEveryKind 0", "4 half 27"}, got[:5])
}
