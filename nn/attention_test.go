package nn_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// A step transposes queries, keys and values, but never their products, which are larger.
func TestAttention_turnsNoProducts(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	const batch, places, heads, width = 2, 13, 3, 4
	step := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(graph.Square(nn.Attention{Heads: heads, Causal: true}.Apply(b.Scope(), b.Field("x")))))
	})
	defer func() { require.NoError(t, step.Close()) }()
	set := must.M1(data.New(data.X(make([]float32, batch*places*heads*width), batch, places, heads*width)))
	for b, err := range set.Batches(batch).All() {
		require.NoError(t, err)
		program, err := step.Program(t.Context(), state, b)
		require.NoError(t, err)
		turned := 0
		for line := range strings.Lines(program.StableHLO()) {
			if strings.Contains(line, "stablehlo.transpose") {
				turned++
				require.LessOrEqual(t, strings.Count(line, fmt.Sprint(places, "x")), 2, line) // one place of the operand, one of the result
			}
		}
		require.NotZero(t, turned)
	}
}

// TestS21_saturatedSoftmax: the gradient of a saturated softmax is a difference of equal numbers. It may have their
// rounding error, as in JAX's float32; docs/maintain/numerics.md has the numbers.
func TestS21_saturatedSoftmax(t *testing.T) {
	const places, width = 12, 8
	var rows []struct {
		Scale              float64
		Ties               bool
		X, W               []float32
		Kernels, Gradients map[string][]float64
		Error              map[string]float64
	}
	text, err := os.ReadFile("testdata/saturated.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &rows))
	r, names := plugintest.CPU(t), []string{"query", "key", "value", "output"}
	for _, row := range rows {
		store := model.NewStore()
		for _, n := range names {
			kernel := make([]float32, width*width)
			for i, v := range row.Kernels[n] {
				kernel[i] = float32(v)
			}
			store.RootScope().In("%s", n).VariableWithValue("kernel", tensors.FromFlatDataAndDimensions(kernel, width, width))
		}
		got, err := model.CallOnceN(r, store, func(scope *model.Scope, x, w *graph.Node) []*graph.Node {
			y := nn.Attention{Heads: 2, NoBias: true}.Apply(scope, x)
			var wrt []*graph.Node
			for _, n := range names {
				wrt = append(wrt, store.GetVariable("/"+n+"/kernel").NodeValue(x.Graph()))
			}
			return graph.Gradient(graph.ReduceAllSum(graph.Mul(y, w)), wrt...)
		}, tensors.FromFlatDataAndDimensions(row.X, 1, places, width), tensors.FromFlatDataAndDimensions(row.W, 1, places, width))
		require.NoError(t, err)
		for k, n := range names {
			off, most := 0.0, 0.0
			for i, v := range tensors.MustCopyFlatData[float32](got[k]) {
				off, most = max(off, math.Abs(float64(v)-row.Gradients[n][i])), max(most, math.Abs(row.Gradients[n][i]))
			}
			require.LessOrEqual(t, off, max(10*row.Error[n], 1e-6*most), "scale %v, ties %v: %s", row.Scale, row.Ties, n)
			t.Logf("scale %4v, ties %5v: d/%s/kernel off by %.1e of %.1e, JAX's float32 by %.1e", row.Scale, row.Ties, n, off, most, row.Error[n])
		}
	}
}

// A prompt and then place by place, in a loop, gives the same as the whole sequence at once, and NaN when the cache is
// full. Examples may be at different places.
func TestDecode(t *testing.T) {
	for _, a := range []nn.Attention{
		{Heads: 4, KeyHeads: 2, Causal: true, Rotary: 1e4},
		{Heads: 2, Causal: true, Window: 2, Rates: []float64{1, 0.3}, HeadNorm: &nn.RMSNorm{OnePlus: true}, NoOutputBias: true},
		{Heads: 4, KeyHeads: 2, Causal: true, Cap: 0.5, Scale: 2, Fused: true},
	} {
		decodes(t, a)
	}
}

func decodes(t *testing.T, a nn.Attention) {
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
		next := func(cache nn.Cache, first, second int) *node { // the examples' places
			cache.Position = graph.Const(x.Graph(), []int32{int32(first), int32(second)})
			of := graph.Concatenate([]*node{graph.Slice(x, graph.AxisElem(0), graph.AxisRange(first, first+1)), graph.Slice(x, graph.AxisElem(1), graph.AxisRange(second, second+1))}, 0)
			y, _ := a.Decode(s.At("attention"), of, cache)
			return y
		}
		apart := graph.Concatenate([]*node{next(cache, prompt, prompt-1), next(nn.Cache{Key: last[0], Value: last[1]}, 0, 4)}, 0)
		over, _ := a.Decode(s.At("attention"), places(x, 0, 1), nn.Cache{Key: last[0], Value: last[1], Position: graph.Const(x.Graph(), []int32{time, 0})})
		return []*node{whole, graph.Concatenate([]*node{begin, rest[0]}, 1), graph.ConvertDType(last[2], dtypes.Float32), full,
			masked.Apply(s.At("attention"), x), some, apart, over}
	})
	for i, of := range [][2]int{{0, prompt}, {1, prompt - 1}, {0, 0}, {1, 4}} {
		require.InDeltaSlice(t, out[0][(of[0]*time+of[1])*8:][:8], out[6][i*8:][:8], 1e-5)
	}
	require.True(t, math.IsNaN(float64(out[7][0])))
	require.InDeltaSlice(t, out[0][time*8:][:8], out[7][8:], 1e-5)
	require.InDeltaSlice(t, out[0], out[1], 1e-5)
	require.Equal(t, []float32{time}, out[2])
	for _, v := range out[3] {
		require.True(t, math.IsNaN(float64(v)))
	}
	require.InDeltaSlice(t, out[4], out[5], 1e-5)
}

// With a window the output is that of a mask, and Rates of a base's powers are Rotary.
func TestAttention_windowAndRates(t *testing.T) {
	const batch, places = 2, 6
	out := call(t, normal(1, batch, places, 8), func(s *model.Scope, x *node) (out []*node) {
		square := shapes.Make(dtypes.Int32, batch, places, places)
		query, key := graph.Iota(x.Graph(), square, 1), graph.Iota(x.Graph(), square, 2)
		near := graph.LogicalAnd(graph.LessOrEqual(key, query), graph.GreaterThan(graph.AddScalar(key, 3), query))
		lengths := graph.Const(x.Graph(), []int32{places, 2}) // the second example's last queries have no key
		both := graph.LogicalAnd(near, graph.LessThan(key, graph.BroadcastToDims(graph.Reshape(lengths, batch, 1, 1), batch, places, places)))
		for _, a := range []nn.Attention{
			{Heads: 2, Causal: true, Window: 3, Rotary: 100}, {Heads: 2, Mask: near, Rates: []float64{1, 0.1}},
			{Heads: 2, Causal: true, Window: 3, Mask: lengths}, {Heads: 2, Mask: both},
		} {
			out = append(out, a.Apply(s.At("attention"), x))
		}
		return out
	})
	require.InDeltaSlice(t, out[1], out[0], 1e-6)
	require.InDeltaSlice(t, out[3], out[2], 1e-6)
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
