package nn

import (
	"cmp"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/attention/pos"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

// Attention is multi-head attention (Vaswani et al. 2017).
type Attention struct {
	Heads int
	// KeyHeads is that of key and value heads, a divisor of Heads (Ainslie et al. 2023). Heads if 0.
	KeyHeads int
	// Width is a head's, the input's divided by Heads if 0.
	Width int
	// Causal lets each place attend only to itself and earlier ones.
	Causal bool
	// Rotary is the base of rotary position embeddings (Su et al. 2021), for example 10000. A pair is one element from
	// each half of a head. None if 0.
	Rotary float64
	// Rates replace Rotary's base by the angles per place of Width/2 pairs, as scaled for long texts.
	Rates []float64
	// Window bounds the places that each attends to with Causal: itself and those before it. All if 0.
	Window int
	// Mask selects the keys: lengths, integers [batch], or bool [batch, keys], [batch, queries, keys] or [batch,
	// heads, queries, keys]; nil: [MaskOf] the input. The attention of a query without keys is 0.
	Mask *graph.Node
	// Bias is added to the scaled scores: [1 or batch, heads, queries, keys], as [RelativePositions].
	Bias *graph.Node
	// Scale multiplies the products of queries and keys. 1/√Width if 0.
	Scale float64
	// Cap bounds the scaled scores by [SoftCap], before Bias. None if 0.
	Cap     float64
	Dropout float64
	// HeadNorm normalizes each head of queries and keys, before rotary positions (Henry et al. 2020).
	HeadNorm     *RMSNorm
	Fused        bool // one kernel and bias, qkv, for query, key and value
	NoBias       bool
	NoOutputBias bool                      // output has no bias
	NoKeyBias    bool                      // key has no bias, which would not change the weights
	Kernel       model.VariableInitializer // "glorot_uniform" if nil
}

// Apply is self-attention: [batch, places, n] to [batch, places, n]. Its variables are kernel and bias in query [n,
// heads·width], key and value [n, keyHeads·width], and output [heads·width, n], and scale [width] in query_norm and
// key_norm. Fused, qkv has the columns of query, key and value.
func (a Attention) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(a, scope, x) }

func (a Attention) build(scope *model.Scope, x *graph.Node) *graph.Node {
	sequence("Attention", scope, x)
	if a.Mask == nil {
		a.Mask = MaskOf(x)
	}
	return a.of(scope, x, x)
}

// Cross is the attention of x to memory, [batch, keys, m], with Apply's variables.
func (a Attention) Cross(scope *model.Scope, x, memory *graph.Node) *graph.Node {
	if a.Causal || a.Rotary != 0 || a.Rates != nil {
		fail("Attention", scope, "Causal, Rotary and Rates use the places of one sequence, expected none of them in Cross")
	}
	if a.Fused {
		fail("Attention", scope, "Fused has one kernel for one sequence, expected not Fused in Cross")
	}
	sequence("Attention", scope, memory)
	return a.of(scope, x, memory)
}

func (a Attention) of(scope *model.Scope, x, memory *graph.Node) *graph.Node {
	a = a.checked(scope, x)
	q, k, v := a.project(scope, x, memory, nil)
	mask := a.mask(scope, q, k)
	causal, n := a.Causal, x.Shape().Dimensions[1]
	if causal && (mask != nil || a.Window > 0 && a.Window < n) { // GoMLX takes a mask or causal
		seen := graph.Reshape(a.earlier(x.Graph(), n, n, nil), 1, n, 1, n)
		if mask != nil {
			seen = logicalAnd(mask, seen)
		}
		mask, causal = seen, false
	}
	return a.out(scope, x, a.attend(scope, q, k, v, attention.LayoutBSHD, mask, causal))
}

// Cache has the keys and values of decoded places: each further place costs the same.
type Cache struct {
	Key, Value *graph.Node // [batch·keyHeads, length, width]: XLA updates it in place
	Position   *graph.Node // number of places, an int32 scalar, or int32 [batch]
}

// NewCache returns an empty cache for length places of sequences like x, [batch, …, n].
func (a Attention) NewCache(scope *model.Scope, x *graph.Node, length int) Cache {
	a = a.checked(scope, x)
	atLeastOne("Attention", scope, "the length of the cache", length)
	empty := graph.Zeros(x.Graph(), shapes.Make(x.DType(), x.Shape().Dimensions[0]*a.KeyHeads, length, a.Width))
	return Cache{Key: empty, Value: empty, Position: graph.Scalar(x.Graph(), dtypes.Int32, 0)}
}

// Decode is Apply of a Causal attention for the places after the cache: a prompt, or a new place. It also returns the
// extended cache. If the cache is too short, the output is NaN. Mask may be lengths [batch] or bool [batch, length],
// for the cache's places.
func (a Attention) Decode(scope *model.Scope, x *graph.Node, cache Cache) (*graph.Node, Cache) {
	a = a.checked(scope, x)
	if !a.Causal {
		fail("Attention", scope, "Decode returns the same as Apply only with Causal: set Causal")
	}
	batch, n, g := x.Shape().Dimensions[0], x.Shape().Dimensions[1], x.Graph()
	length := 0
	if cache.Key.Rank() == 3 {
		length = cache.Key.Shape().Dimensions[1]
	}
	shape := shapes.Make(x.DType(), batch*a.KeyHeads, length, a.Width)
	if !cache.Key.Shape().Equal(shape) || !cache.Value.Shape().Equal(shape) {
		fail("Attention", scope, "the cache has keys %s and values %s for the input %s, expected (%s)[%d, length, %d] for both, as made by NewCache",
			cache.Key.Shape(), cache.Value.Shape(), x.Shape(), shape.DType, batch*a.KeyHeads, a.Width)
	}
	if at := cache.Position.Shape(); at.DType != dtypes.Int32 || !at.IsScalar() && at.CheckDims(batch) != nil {
		fail("Attention", scope, "the cache has the Position %s, expected an int32 scalar or (Int32)[%d]", at, batch)
	}
	if n > length {
		fail("Attention", scope, "the input has %d places, the cache's length is %d", n, length)
	}
	q, k, v := a.project(scope, x, x, cache.Position)
	// Cached keys and values are [batch·heads, places, width].
	flat := func(v *graph.Node) *graph.Node {
		return graph.Reshape(graph.TransposeAllAxes(v, 0, 2, 1, 3), -1, n, a.Width)
	}
	wide := func(v *graph.Node) *graph.Node { return graph.ExpandAxes(v, 0) }
	next := Cache{Key: put(cache.Key, flat(k), cache.Position), Value: put(cache.Value, flat(v), cache.Position),
		Position: graph.AddScalar(cache.Position, float64(n))}
	mask := graph.Reshape(a.earlier(g, n, length, cache.Position), -1, 1, n, length)
	if a.Mask != nil {
		mask = logicalAnd(mask, graph.Reshape(placesMask("Attention", scope, a.Mask, batch, length), batch, 1, 1, length))
	}
	if mask.Shape().Dimensions[0] > 1 {
		mask = graph.Reshape(graph.BroadcastToDims(mask, batch, a.Heads, n, length), 1, -1, n, length)
	}
	y := a.attend(scope, wide(flat(q)), wide(next.Key), wide(next.Value), attention.LayoutBHSD, mask, false)
	y = a.out(scope, x, graph.TransposeAllAxes(graph.Reshape(y, batch, a.Heads, n, a.Width), 0, 2, 1, 3))
	return within(cache.Position, n, length, y), next
}

func put(cache, x, place *graph.Node) *graph.Node {
	zero := graph.ScalarZero(x.Graph(), dtypes.Int32)
	if place.IsScalar() {
		return graph.DynamicUpdateSlice(cache, x, []*graph.Node{zero, place, zero})
	}
	batch := place.Shape().Dimensions[0]
	heads := x.Shape().Dimensions[0] / batch
	for i := range batch { // XLA updates in place
		from := graph.Scalar(x.Graph(), dtypes.Int32, i*heads)
		one := graph.Slice(x, graph.AxisRange(i*heads, (i+1)*heads))
		cache = graph.DynamicUpdateSlice(cache, one, []*graph.Node{from, graph.Reshape(graph.Slice(place, graph.AxisRange(i, i+1))), zero})
	}
	return cache
}

func (a Attention) checked(scope *model.Scope, x *graph.Node) Attention {
	sequence("Attention", scope, x)
	atLeastOne("Attention", scope, "Heads", a.Heads)
	checkRate("Attention", scope, a.Dropout)
	n := x.Shape().Dimensions[2]
	if a.Width == 0 && n%a.Heads != 0 {
		fail("Attention", scope, "the input is %s, expected a multiple of %d heads in its last axis, or a Width", x.Shape(), a.Heads)
	}
	a.Width, a.KeyHeads = cmp.Or(a.Width, n/a.Heads), cmp.Or(a.KeyHeads, a.Heads)
	atLeastOne("Attention", scope, "Width", a.Width)
	if a.KeyHeads < 1 || a.Heads%a.KeyHeads != 0 {
		fail("Attention", scope, "%d heads of keys for %d of queries, expected a divisor", a.KeyHeads, a.Heads)
	}
	if a.Rotary < 0 || a.Rotary > 0 && a.Width%2 != 0 {
		fail("Attention", scope, "rotary positions of the base %v for heads of %d, expected a base above 0 and an even width", a.Rotary, a.Width)
	}
	if a.Rates != nil && (len(a.Rates) != a.Width/2 || a.Width%2 != 0 || a.Rotary != 0) {
		fail("Attention", scope, "%d Rates and the Rotary %v for heads of %d, expected half as many Rates, and not Rotary", len(a.Rates), a.Rotary, a.Width)
	}
	if a.Window < 0 || a.Window > 0 && !a.Causal {
		fail("Attention", scope, "the Window is %d and Causal %t, expected at least 1 with Causal, or 0", a.Window, a.Causal)
	}
	if !(a.Scale >= 0 && a.Cap >= 0) || math.IsInf(a.Scale+a.Cap, 1) {
		fail("Attention", scope, "the Scale is %v and the Cap %v, expected finite numbers above 0, or 0 for the standard", a.Scale, a.Cap)
	}
	return a
}

func (a Attention) dense(scope *model.Scope, x *graph.Node, units int) *graph.Node {
	return Dense{Units: units, NoBias: a.NoBias, Kernel: a.Kernel}.build(scope, x)
}

// earlier is true at the keys that each query may see: [1 or batch, queries, keys]. start is the first query's place.
func (a Attention) earlier(g *graph.Graph, queries, keys int, start *graph.Node) *graph.Node {
	square := shapes.Make(dtypes.Int32, 1, queries, keys)
	query, key := graph.Iota(g, square, 1), graph.Iota(g, square, 2)
	if start != nil {
		query = graph.Add(query, graph.Reshape(start, -1, 1, 1))
		key = graph.BroadcastToDims(key, query.Shape().Dimensions...)
	}
	seen := graph.LessOrEqual(key, query)
	if a.Window > 0 && a.Window < keys {
		seen = graph.LogicalAnd(seen, graph.GreaterThan(graph.AddScalar(key, float64(a.Window)), query))
	}
	return seen
}

// project returns [batch, places, heads, width], with rotary positions from start on.
func (a Attention) project(scope *model.Scope, x, memory, start *graph.Node) (q, k, v *graph.Node) {
	heads := func(name string, x *graph.Node, n int) *graph.Node {
		dims := x.Shape().Dimensions
		of := a
		of.NoBias = a.NoBias || a.NoKeyBias && name == "key"
		return graph.Reshape(of.dense(scope.In("%s", name), x, n*a.Width), dims[0], dims[1], n, a.Width)
	}
	if a.Fused {
		all, from := heads("qkv", x, a.Heads+2*a.KeyHeads), 0
		take := func(n int) *graph.Node {
			from += n
			return graph.SliceAxis(all, 2, graph.AxisRange(from-n, from))
		}
		q, k, v = take(a.Heads), take(a.KeyHeads), take(a.KeyHeads)
	} else {
		q, k, v = heads("query", x, a.Heads), heads("key", memory, a.KeyHeads), heads("value", memory, a.KeyHeads)
	}
	if a.HeadNorm != nil {
		q, k = a.HeadNorm.build(scope.In("query_norm"), q), a.HeadNorm.build(scope.In("key_norm"), k)
	}
	rates := a.Rates
	if a.Rotary > 0 {
		rates = RotaryRates(a.Rotary, a.Width)
	}
	if rates == nil {
		return q, k, v
	}
	angle := angles(x, start, x.Shape().Dimensions[1], rates)
	turn := pos.NewRoPEWithCosSin(graph.ConvertDType(graph.Cos(angle), x.DType()), graph.ConvertDType(graph.Sin(angle), x.DType()))
	return turn.Encode(q, 1), turn.Encode(k, 1), v
}

// mask is for [batch, queries, heads, keys], where an axis may be 1, or nil.
func (a Attention) mask(scope *model.Scope, q, k *graph.Node) *graph.Node {
	if a.Mask == nil {
		return nil
	}
	batch, queries, keys := q.Shape().Dimensions[0], q.Shape().Dimensions[1], k.Shape().Dimensions[1]
	m := a.Mask
	switch dims := m.Shape().Dimensions; {
	case m.Rank() < 3:
		return graph.Reshape(placesMask("Attention", scope, m, batch, keys), batch, 1, 1, keys)
	case m.DType() != boolean:
	case m.Shape().CheckDims(batch, queries, keys) == nil:
		return graph.Reshape(m, batch, queries, 1, keys)
	case m.Rank() == 4 && (dims[1] == 1 || dims[1] == a.Heads) && m.Shape().CheckDims(batch, dims[1], queries, keys) == nil:
		return graph.TransposeAllAxes(m, 0, 2, 1, 3)
	}
	fail("Attention", scope, "Mask is %s, expected bool [%d, %d, %d], or the same with an axis of %d heads after the first", m.Shape(), batch, queries, keys, a.Heads)
	return nil
}

func (a Attention) bias(scope *model.Scope, q, k *graph.Node, layout attention.AxesLayout) *graph.Node {
	if a.Bias == nil {
		return nil
	}
	places := layout.SeqAxis()
	batch, queries, keys := q.Shape().Dimensions[0], q.Shape().Dimensions[places], k.Shape().Dimensions[places]
	if a.Bias.DType() != q.DType() || a.Bias.Shape().CheckDims(1, a.Heads, queries, keys) != nil && a.Bias.Shape().CheckDims(batch, a.Heads, queries, keys) != nil {
		fail("Attention", scope, "Bias is %s, expected (%s)[1 or %d, %d, %d, %d]", a.Bias.Shape(), q.DType(), batch, a.Heads, queries, keys)
	}
	return graph.BroadcastToDims(a.Bias, batch, a.Heads, queries, keys)
}

// attend uses GoMLX's core for a backend's fused form.
func (a Attention) attend(scope *model.Scope, q, k, v *graph.Node, layout attention.AxesLayout, mask *graph.Node, causal bool) *graph.Node {
	scale, bias := cmp.Or(a.Scale, 1/math.Sqrt(float64(a.Width))), a.bias(scope, q, k, layout)
	if a.Cap == 0 && q.Graph().Backend().Capabilities().Operations[compute.OpTypeFusedScaledDotProductAttention] {
		options := attention.CoreOptions{Scale: scale, UseCausalMask: causal, AttentionMask: mask, AttentionBias: bias, Scope: scope}
		if a.Dropout > 0 {
			options.DropoutRate = graph.Scalar(q.Graph(), dtypes.Float32, a.Dropout)
		}
		y, _ := attention.Core(q, k, v, layout, options)
		return y
	}
	// XLA's CPU needs adjacent matrices (docs/decisions/0039).
	headsFirst := func(x *graph.Node) *graph.Node {
		if layout == attention.LayoutBSHD && x != nil {
			x = graph.TransposeAllAxes(x, 0, 2, 1, 3)
		}
		return x
	}
	q, k, v, mask = headsFirst(q), headsFirst(k), headsFirst(v), headsFirst(mask)
	dims, keyDims := q.Shape().Dimensions, k.Shape().Dimensions
	batch, heads, queries, width, keyHeads, keys := dims[0], dims[1], dims[2], dims[3], keyDims[1], keyDims[2]
	// Query heads that share a key head are further rows of its matrix.
	grouped := graph.Reshape(graph.MulScalar(q, scale), batch, keyHeads, heads/keyHeads*queries, width)
	scores := graph.DotGeneral(grouped, []int{3}, []int{0, 1}, k, []int{3}, []int{0, 1})
	scores = graph.Reshape(scores, batch, heads, queries, keys)
	if a.Cap > 0 {
		scores = SoftCap(scores, a.Cap)
	}
	if bias != nil {
		scores = graph.Add(scores, bias)
	}
	if causal {
		mask = graph.Reshape(a.earlier(q.Graph(), queries, queries, nil), 1, 1, queries, queries)
	}
	weights := softmax(scores, mask, causal)
	if a.Dropout > 0 {
		weights = layers.Dropout(scope, weights, graph.Scalar(q.Graph(), dtypes.Float32, a.Dropout))
	}
	weights = graph.Reshape(weights, batch, keyHeads, heads/keyHeads*queries, keys)
	y := graph.DotGeneral(weights, []int{3}, []int{0, 1}, v, []int{2}, []int{0, 1})
	return headsFirst(graph.Reshape(y, batch, heads, queries, width))
}

// softmax is 0 where mask is false. always: each row has a true element.
func softmax(x, mask *graph.Node, always bool) *graph.Node {
	seen := x
	if mask != nil {
		mask = graph.BroadcastToDims(mask, x.Shape().Dimensions...)
		seen = graph.Where(mask, x, graph.BroadcastToDims(graph.Infinity(x.Graph(), x.DType(), -1), x.Shape().Dimensions...))
	}
	last := func(f func(x *graph.Node, axes ...int) *graph.Node, x *graph.Node) *graph.Node {
		return graph.ReduceAndKeep(x, f, -1)
	}
	most := last(graph.ReduceMax, seen)
	if mask != nil && !always {
		most = graph.Where(graph.Equal(most, graph.Infinity(x.Graph(), x.DType(), -1)), graph.ZerosLike(most), most)
	}
	raised := graph.Exp(graph.Sub(seen, most))
	sum := last(graph.ReduceSum, raised)
	if mask != nil && !always {
		sum = graph.Where(graph.Equal(sum, graph.ZerosLike(sum)), graph.OnesLike(sum), sum)
	}
	y := graph.Div(raised, sum)
	return autodiff.Custom(y, []*graph.Node{x}, func(_ []*graph.Node, y, v *graph.Node) []*graph.Node {
		return []*graph.Node{graph.Mul(y, graph.Sub(v, last(graph.ReduceSum, graph.Mul(y, v))))}
	})
}

func (a Attention) out(scope *model.Scope, x, y *graph.Node) *graph.Node {
	dims := y.Shape().Dimensions
	a.NoBias = a.NoBias || a.NoOutputBias
	return a.dense(scope.In("output"), graph.Reshape(y, dims[0], dims[1], a.Heads*a.Width), x.Shape().Dimensions[2])
}

func logicalAnd(a, b *graph.Node) *graph.Node {
	dims := make([]int, a.Rank())
	for i := range dims {
		dims[i] = max(a.Shape().Dimensions[i], b.Shape().Dimensions[i])
	}
	return graph.LogicalAnd(graph.BroadcastToDims(a, dims...), graph.BroadcastToDims(b, dims...))
}
