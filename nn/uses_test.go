package nn_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
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
	store := model.NewStore()
	require.NoError(t, store.SetRNGStateFromSeed(1))
	exec, err := model.NewExec(plugintest.CPU(t), store, func(s *model.Scope, xs []*node) []*node { return build(s, xs[0]) })
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

// A prompt and then place by place, in a loop, gives the same as the whole sequence at once, and NaN when the cache is
// full.
func TestDecode(t *testing.T) {
	a := nn.Attention{Heads: 4, KeyHeads: 2, Causal: true, Rotary: 1e4}
	const time, prompt = 7, 3
	out := call(t, normal(1, 2, time, 8), func(s *model.Scope, x *node) []*node {
		whole := a.Apply(s.In("attention"), x)
		begin, cache := a.Decode(s.Shared("attention"), places(x, 0, prompt), a.NewCache(s, x, time))
		carry := []*node{cache.Key, cache.Value, cache.Position}
		last, rest := ops.Scan(carry, []*node{places(x, prompt, time)}, func(carry, at []*node) (next, out []*node) {
			y, c := a.Decode(s.At("attention"), graph.ExpandAxes(at[0], 1), nn.Cache{Key: carry[0], Value: carry[1], Position: carry[2]})
			return []*node{c.Key, c.Value, c.Position}, []*node{graph.Squeeze(y, 1)}
		}, ops.Axis(1))
		full, _ := a.Decode(s.At("attention"), places(x, 0, 1), nn.Cache{Key: last[0], Value: last[1], Position: last[2]})
		masked := a
		masked.Mask = graph.Const(x.Graph(), []int32{time, 4})
		some, _ := masked.Decode(s.At("attention"), x, a.NewCache(s, x, time))
		return []*node{whole, graph.Concatenate([]*node{begin, rest[0]}, 1), graph.ConvertDType(last[2], dtypes.Float32), full,
			masked.Apply(s.At("attention"), x), some}
	})
	require.InDeltaSlice(t, out[0], out[1], 1e-5)
	require.Equal(t, []float32{time}, out[2])
	for _, v := range out[3] {
		require.True(t, math.IsNaN(float64(v)))
	}
	require.InDeltaSlice(t, out[4], out[5], 1e-5)
}

// Positions continue at Start.
func TestPositionsStart(t *testing.T) {
	out := call(t, normal(1, 2, 6, 4), func(s *model.Scope, x *node) []*node {
		p, at := nn.Positions{Length: 6}, graph.Scalar(x.Graph(), dtypes.Int32, 2)
		later := nn.Positions{Length: 6, Start: at}
		full := nn.Positions{Length: 6, Start: graph.AddScalar(at, 3)}
		return []*node{
			places(p.Apply(s.In("p"), x), 2, 4), later.Apply(s.Shared("p"), places(x, 2, 4)),
			places(nn.Sinusoidal{}.Apply(s, x), 2, 4), nn.Sinusoidal{Start: at}.Apply(s, places(x, 2, 4)),
			full.Apply(s.Shared("p"), places(x, 2, 4)),
		}
	})
	require.Equal(t, out[0], out[1])
	require.InDeltaSlice(t, out[2], out[3], 1e-6)
	require.True(t, math.IsNaN(float64(out[4][0])))
}

// An example of length 0 has no places: they affect no number, and no gradient is NaN.
func TestNothingIsSeen(t *testing.T) {
	out := call(t, normal(1, 2, 3, 4), func(s *model.Scope, x *node) []*node {
		lengths := graph.Const(x.Graph(), []int32{0, 2})
		y := nn.Attention{Heads: 2, Mask: lengths, NoBias: true}.Apply(s.In("attention"), x)
		h, last := nn.LSTM{Units: 3, Mask: lengths, Bidirectional: true}.ApplyStates(s.In("lstm"), x)
		by := func(v *node) *node { return ops.Gradient(graph.ReduceAllSum(graph.Square(v)), x)[0] }
		key := s.Store().GetVariable("/attention/key/kernel").NodeValue(x.Graph())
		return []*node{y, h, last[0], by(y), by(h), ops.Gradient(graph.ReduceAllSum(graph.Square(y)), key)[0]}
	})
	require.Equal(t, make([]float32, 12), out[0][:12])
	require.Equal(t, make([]float32, 18), out[1][:18])
	require.Equal(t, make([]float32, 6), out[1][30:], "the second's last place")
	require.Equal(t, make([]float32, 3), out[2][:3])
	for _, gradient := range out[3:5] {
		require.Equal(t, make([]float32, 12), gradient[:12])
		for _, v := range gradient[12:20] {
			require.False(t, math.IsNaN(float64(v)))
			require.NotZero(t, v)
		}
	}
	require.Equal(t, make([]float32, 4), out[4][20:])
	for _, v := range out[5] {
		require.False(t, math.IsNaN(float64(v)), "the keys' kernel")
	}
}

// Attention's softmax has a custom gradient: values and two derivatives are those of GoMLX's core.
func TestAttention_asGoMLX(t *testing.T) {
	for name, a := range map[string]nn.Attention{
		"plain": {Heads: 2, NoBias: true}, "causal": {Heads: 4, NoBias: true, Causal: true}, "grouped": {Heads: 4, KeyHeads: 2, NoBias: true, Causal: true},
	} {
		for _, masked := range []bool{false, true} {
			out := call(t, normal(1, 3, 5, 8), func(s *model.Scope, x *node) (out []*node) {
				const batch, places, n = 3, 5, 8
				mask := graph.BroadcastToDims(graph.Const(x.Graph(), true), batch, places, places)
				if masked {
					square := shapes.Make(dtypes.Int32, batch, places, places)
					at := func(axis int) *node { return graph.Iota(x.Graph(), square, axis) }
					mask = graph.GreaterThan(graph.Add(at(0), at(1)), at(2)) // the first query of the first example has no key
					a.Mask = mask
				}
				y := a.Apply(s.In("attention"), x)
				heads := func(name string, heads int) *node {
					kernel := s.Store().GetVariable("/attention/" + name + "/kernel").NodeValue(x.Graph())
					return graph.Reshape(graph.DotGeneral(x, []int{2}, nil, kernel, []int{0}, nil), batch, places, heads, n/a.Heads)
				}
				if a.Causal {
					mask = graph.LogicalAnd(mask, graph.BroadcastToDims(graph.ExpandAxes(graph.LowerTriangular(x.Graph(), places), 0), batch, places, places))
				}
				keys := cmp.Or(a.KeyHeads, a.Heads)
				want, _ := attention.Core(heads("query", a.Heads), heads("key", keys), heads("value", keys), attention.LayoutBSHD,
					attention.CoreOptions{AttentionMask: graph.ExpandAxes(mask, 2)})
				kernel := s.Store().GetVariable("/attention/output/kernel").NodeValue(x.Graph())
				want = graph.DotGeneral(graph.Reshape(want, batch, places, n), []int{2}, nil, kernel, []int{0}, nil)
				for _, y := range []*node{y, want} {
					first := ops.Gradient(graph.ReduceAllSum(graph.Square(y)), x)[0]
					out = append(out, y, first, ops.Gradient(graph.ReduceAllSum(graph.Square(first)), x)[0])
				}
				return out
			})
			for i := range 3 {
				largest := float64(slices.MaxFunc(out[3+i], func(a, b float32) int { return cmp.Compare(math.Abs(float64(a)), math.Abs(float64(b))) }))
				require.NotZero(t, largest)
				require.InDeltaSlice(t, out[3+i], out[i], 1e-5*max(1, math.Abs(largest)), "%s, masked %t, derivative %d", name, masked, i)
			}
		}
	}
}

// The padding is 0 and does not learn, at either end of a tied embedding. An id outside is NaN.
func TestEmbedding_padding(t *testing.T) {
	out := call(t, normal(1, 2, 3), func(s *model.Scope, x *node) []*node {
		e := nn.Embedding{Vocabulary: 4, Width: 3, Padding: new(0)}
		ids := graph.Const(x.Graph(), []int32{0, 2, 2})
		y := e.Apply(s.In("tokens"), ids)
		logits := e.Logits(s.Shared("tokens"), x)
		table := s.Store().GetVariable("/tokens/embeddings").NodeValue(x.Graph())
		loss := graph.Add(graph.ReduceAllSum(y), graph.ReduceAllSum(logits))
		far := e.Apply(s.At("tokens"), graph.Const(x.Graph(), []int32{4, -1}))
		return []*node{y, logits, ops.Gradient(loss, table)[0], far}
	})
	require.Equal(t, make([]float32, 3), out[0][:3])
	require.NotContains(t, out[0][3:], float32(0))
	require.Zero(t, out[1][0])
	require.Zero(t, out[1][4])
	require.Equal(t, make([]float32, 3), out[2][:3])
	require.NotContains(t, out[2][3:], float32(0))
	for _, v := range out[3] {
		require.True(t, math.IsNaN(float64(v)))
	}
}

// In training, recurrent dropout draws once for all places, and dropout between layers and on attention weights draws.
// A test has neither.
func TestDropout(t *testing.T) {
	build := func(training bool) [][]float32 {
		return call(t, normal(1, 2, 4, 8), func(s *model.Scope, x *node) []*node {
			s.Store().SetTraining(x.Graph(), training)
			plain := nn.LSTM{Units: 5, Layers: 2}.Apply(s.In("lstm"), x)
			between := nn.LSTM{Units: 5, Layers: 2, Dropout: 0.5}.Apply(s.Shared("lstm"), x)
			recurrent := nn.LSTM{Units: 5, Layers: 2, RecurrentDropout: 0.5}.Apply(s.At("lstm"), x)
			attention := nn.Attention{Heads: 2}.Apply(s.In("attention"), x)
			weights := nn.Attention{Heads: 2, Dropout: 0.5}.Apply(s.Shared("attention"), x)
			return []*node{plain, between, recurrent, attention, weights, nn.Dropout{Rate: 0.25}.Apply(s, x), x}
		})
	}
	test, training := build(false), build(true)
	require.Equal(t, test[0], test[1])
	require.Equal(t, test[0], test[2])
	require.Equal(t, test[3], test[4])
	require.Equal(t, test[5], test[6])
	require.NotEqual(t, training[0], training[1])
	require.InDeltaSlice(t, training[0][:5], training[2][:5], 1e-6, "the first place has no state yet")
	require.NotEqual(t, training[0], training[2])
	require.NotEqual(t, training[3], training[4])
	for i, v := range training[5] {
		if v != 0 {
			require.InDelta(t, training[6][i]/0.75, v, 1e-6)
		}
	}
}

// The forget gate of an LSTM begins at 1, all other biases at 0.
func TestBiasesBegin(t *testing.T) {
	out := call(t, normal(1, 1, 1, 2), func(s *model.Scope, x *node) []*node {
		nn.LSTM{Units: 2}.Apply(s.In("lstm"), x)
		nn.GRU{Units: 1}.Apply(s.In("gru"), x)
		nn.Attention{Heads: 1}.Apply(s.In("attention"), x)
		var list []*node
		for _, path := range []string{"/lstm/bias", "/gru/bias", "/attention/query/bias"} {
			list = append(list, s.Store().GetVariable(path).NodeValue(x.Graph()))
		}
		return list
	})
	require.Equal(t, [][]float32{{0, 0, 1, 1, 0, 0, 0, 0}, make([]float32, 6), make([]float32, 2)}, out)
}

// A mistake is an error that says what is expected.
func TestMistakes(t *testing.T) {
	of := func(g *graph.Graph, dims ...int) *node { return graph.Zeros(g, shapes.Make(dtypes.Float32, dims...)) }
	for want, build := range map[string]func(s *model.Scope, g *graph.Graph){
		"nn: Dense in /: Units is 0, expected at least 1":                                                 func(s *model.Scope, g *graph.Graph) { nn.Dense{}.Apply(s, of(g, 2, 3)) },
		`sub-scope "kernel" already visited from "/", use Shared() if this is intended`:                   func(s *model.Scope, g *graph.Graph) { d := nn.Dense{Units: 2}; d.Apply(s, d.Apply(s, of(g, 2, 2))) },
		"nn: Conv in /: Window is [], expected one number, or one for each of 2 spatial axes":             func(s *model.Scope, g *graph.Graph) { nn.Conv{Channels: 1}.Apply(s, of(g, 1, 2, 2, 1)) },
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
		"expected neither in Cross": func(s *model.Scope, g *graph.Graph) {
			nn.Attention{Heads: 1, Causal: true}.Cross(s, of(g, 1, 1, 2), of(g, 1, 1, 2))
		},
	} {
		g := graph.NewGraph(plugintest.CPU(t), "mistakes")
		err := graphs.Catch(func() { build(model.NewStore().RootScope(), g) })
		g.Finalize()
		require.ErrorContains(t, err, want)
	}
}

// An impossible convolution is an error with the layer's scope, the given and the expected value.
func TestConvolutions_wrong(t *testing.T) {
	for _, row := range []struct {
		layer interface {
			Apply(*model.Scope, *node) *node
		}
		dims []int
		want string
	}{
		{nn.Conv{Channels: 2, Window: []int{5}, Valid: true}, []int{1, 4, 2}, "nn: Conv in /here: windows [5] with the dilation [1] do not fit the input (Float32)[1, 4, 2]: expected windows that reach over at most 4 places"},
		{nn.SeparableConv{Channels: 2, Window: []int{2}, Dilation: []int{4}, Valid: true}, []int{1, 4, 2}, "SeparableConv in /here: windows [2] with the dilation [4] do not fit"},
		{nn.Conv{Channels: 2, Window: []int{3}, Causal: true}, []int{1, 4, 4, 2}, "Conv in /here: Causal puts zeros in front of one spatial axis"},
		{nn.Conv{Channels: 2, Window: []int{3}, Causal: true, Valid: true}, []int{1, 4, 2}, "Conv in /here: Causal puts zeros"},
		{nn.Conv{Channels: 3, Window: []int{3}, Groups: 2}, []int{1, 4, 2}, "2 groups for 2 inputs and 3 channels"},
		{nn.DepthwiseConv{Window: []int{3, 3}}, []int{1, 4, 2}, "DepthwiseConv in /here: Window is [3 3], expected one number, or one for each of 1 spatial axes"},
		{nn.DepthwiseConv{Window: []int{3}, Multiplier: -1}, []int{1, 4, 2}, "Multiplier is -1"},
		{nn.DepthwiseConv{}, []int{1, 4, 2}, "Window is [], expected one number"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}, Strides: []int{2}, OutputPadding: []int{2}}, []int{1, 4, 2}, "ConvTranspose in /here: OutputPadding is [2], expected numbers below the strides, which are [2]"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}, OutputPadding: []int{-1}}, []int{1, 4, 2}, "OutputPadding is -1, expected at least 0"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}}, []int{4, 2}, "the input is (Float32)[4, 2], expected floating-point numbers [batch, spatial…, n]"},
	} {
		store := model.NewStore()
		exec, err := model.NewExec(plugintest.Go(t), store, func(s *model.Scope, x *node) *node { return row.layer.Apply(s.In("here"), x) })
		require.NoError(t, err)
		_, err = exec.Call(normal(1, row.dims...))
		require.ErrorContains(t, err, row.want)
	}
}

// Pools drop the rest, as VALID. Conv pads as SAME of JAX, which GoMLX's PadSame does not at strides above 1.
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
