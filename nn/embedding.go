package nn

import (
	"cmp"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
)

// Embedding looks up a vector for each id: integers [batch, …] in [0, Vocabulary) to [batch, …, width].
type Embedding struct {
	Vocabulary, Width int
	Padding           *int                      // the id of padding, as new(0): its vector stays 0
	Initial           model.VariableInitializer // RandomUniform(-0.05, 0.05) if nil
	DType             dtypes.DType              // the vectors'; the step's if 0: float32 or a policy's
}

// Apply has the variable embeddings [vocabulary, width]. An id outside the vocabulary gives NaN; in a flaxlike model it
// is an error before the step if the ids are a field of the batch. With Padding, Apply sets the mask [batch, places]
// ([MaskOf]).
func (e Embedding) Apply(scope *model.Scope, ids *graph.Node) *graph.Node {
	return apply(e, scope, ids)
}

func (e Embedding) build(scope *model.Scope, ids *graph.Node) *graph.Node {
	atLeastOne("Embedding", scope, "Vocabulary", e.Vocabulary)
	atLeastOne("Embedding", scope, "Width", e.Width)
	if !ids.DType().IsInt() {
		fail("Embedding", scope, "the input is %s, expected whole numbers from 0 to %d: give the field as []int32", ids.Shape(), e.Vocabulary-1)
	}
	if t := layering.TraceOf(ids); t != nil {
		t.Indices(ids, e.Vocabulary)
	}
	scope.In("embeddings")
	table, g := e.table(scope, ids), ids.Graph()
	y := graph.Gather(table, graph.ExpandAxes(ids, -1))
	wide := func(v *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.ExpandAxes(v, -1), y.Shape().Dimensions...)
	}
	at := func(n int) *graph.Node { return graph.Scalar(g, ids.DType(), n) }
	known := graph.LogicalAnd(graph.GreaterOrEqual(ids, at(0)), graph.LessThan(ids, at(e.Vocabulary)))
	y = graph.Where(wide(known), y, graph.BroadcastToDims(graph.Scalar(g, y.DType(), math.NaN()), y.Shape().Dimensions...))
	if e.Padding == nil {
		return y
	}
	y = graph.Where(wide(graph.Equal(ids, at(*e.Padding))), graph.ZerosLike(y), y)
	if ids.Rank() == 2 {
		mask := graph.NotEqual(ids, at(*e.Padding))
		if given := MaskOf(ids); given != nil {
			mask = graph.LogicalAnd(mask, given)
		}
		layering.Masks(ids)[y] = mask
	}
	return y
}

// Logits multiplies x with each vector of the table, for tied input and output embeddings: [batch, …, width] to [batch,
// …, vocabulary]. Call it at Apply's scope. The padding id's logit is 0.
func (e Embedding) Logits(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("Embedding", scope, x, 1, "[batch, …, width]")
	if n := x.Shape().Dimensions[x.Rank()-1]; n != e.Width {
		fail("Embedding", scope, "the input is %s, expected vectors of %d", x.Shape(), e.Width)
	}
	table := graph.ConvertDType(e.table(scope, x), x.DType())
	if e.Padding != nil {
		row := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, e.Vocabulary, e.Width), 0)
		table = graph.Where(graph.Equal(row, graph.Scalar(x.Graph(), dtypes.Int32, *e.Padding)), graph.ZerosLike(table), table)
	}
	return graph.DotGeneral(x, []int{x.Rank() - 1}, nil, table, []int{1}, nil)
}

// table uses an existing variable's dtype, perhaps of a policy.
func (e Embedding) table(scope *model.Scope, x *graph.Node) *graph.Node {
	if e.Padding != nil && (*e.Padding < 0 || *e.Padding >= e.Vocabulary) {
		fail("Embedding", scope, "the padding is %d, expected a number from 0 to %d", *e.Padding, e.Vocabulary-1)
	}
	t := e.DType
	if v := scope.GetVariable("embeddings"); v != nil {
		t = v.DType()
	} else if t == 0 {
		t = dtypes.Float32
		if step := layering.StepOf(x); step != nil {
			t = step.DType()
		}
	}
	return value(scope, x.Graph(), "embeddings", e.Initial, RandomUniform(-0.05, 0.05), shapes.Make(t, e.Vocabulary, e.Width))
}

// Positions adds a learned vector to each place: [batch, places, n], for up to Length places.
type Positions struct {
	Length  int
	Start   *graph.Node               // the first place's number, an integer scalar, or integers [batch]; 0 if nil
	Initial model.VariableInitializer // "glorot_uniform" if nil
}

// Apply has the variable embeddings [length, n]. A place beyond Length gives NaN.
func (p Positions) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(p, scope, x) }

func (p Positions) build(scope *model.Scope, x *graph.Node) *graph.Node {
	sequence("Positions", scope, x)
	places, n := x.Shape().Dimensions[1], x.Shape().Dimensions[2]
	if places > p.Length {
		fail("Positions", scope, "the input is %s, expected at most %d places in its second axis", x.Shape(), p.Length)
	}
	table := variable(scope, x, "embeddings", p.Initial, glorotUniform, p.Length, n)
	if p.Start == nil {
		return graph.Add(x, graph.ExpandAxes(graph.Slice(table, graph.AxisRangeFromStart(places)), 0))
	}
	start := graph.ConvertDType(p.Start, dtypes.Int32)
	if !start.IsScalar() {
		at := graph.Add(graph.Reshape(start, -1, 1, 1), graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, 1, places, 1), 1))
		return within(start, places, p.Length, graph.Add(x, graph.Gather(table, at)))
	}
	rows := graph.DynamicSlice(table, []*graph.Node{start, graph.Scalar(x.Graph(), dtypes.Int32, 0)}, []int{places, n})
	return within(start, places, p.Length, graph.Add(x, graph.ExpandAxes(rows, 0)))
}

func within(start *graph.Node, places, length int, x *graph.Node) *graph.Node {
	fits := graph.LogicalAnd(graph.LessOrEqual(graph.AddScalar(start, float64(places)), graph.Scalar(x.Graph(), start.DType(), length)),
		graph.GreaterOrEqual(start, graph.ScalarZero(x.Graph(), start.DType())))
	if !fits.IsScalar() {
		fits = graph.BroadcastToDims(graph.Reshape(fits, -1, 1, 1), x.Shape().Dimensions...)
	}
	return graph.Where(fits, x, graph.BroadcastToDims(graph.Scalar(x.Graph(), x.DType(), math.NaN()), x.Shape().Dimensions...))
}

// Sinusoidal adds sines and cosines of each place, interleaved along the last axis, with wavelengths from 2π to
// 10,000·2π (Vaswani et al. 2017): [batch, places, n], n even.
type Sinusoidal struct {
	Start *graph.Node // as [Positions.Start]
}

func (w Sinusoidal) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(w, scope, x) }

func (w Sinusoidal) build(scope *model.Scope, x *graph.Node) *graph.Node {
	sequence("Sinusoidal", scope, x)
	places, n := x.Shape().Dimensions[1], x.Shape().Dimensions[2]
	if n%2 != 0 {
		fail("Sinusoidal", scope, "the input is %s, expected an even number in its last axis", x.Shape())
	}
	a := angles(x, w.Start, places, RotaryRates(1e4, n))
	waves := graph.Reshape(graph.Stack([]*graph.Node{graph.Sin(a), graph.Cos(a)}, -1), -1, places, n)
	return graph.Add(x, graph.ConvertDType(waves, x.DType()))
}

// RotaryRates returns the [Attention.Rates] of a base ([Attention.Rotary]): base^(-2i/width).
func RotaryRates(base float64, width int) []float64 {
	rates := make([]float64, width/2)
	for i := range rates {
		rates[i] = math.Pow(base, -2*float64(i)/float64(width))
	}
	return rates
}

// angles is place·rate, [places, rates], in float32 or wider: 16 bits do not distinguish distant places.
func angles(x, start *graph.Node, places int, rates []float64) *graph.Node {
	g, t := x.Graph(), widened(x).DType()
	at := graph.Iota(g, shapes.Make(t, places, len(rates)), 0)
	if start != nil {
		if start = graph.ConvertDType(start, t); !start.IsScalar() {
			at, start = graph.ExpandAxes(at, 0), graph.Reshape(start, -1, 1, 1)
		}
		at = graph.Add(at, start)
	}
	return graph.Mul(at, graph.ExpandLeftToRank(graph.ConvertDType(graph.Const(g, rates), t), at.Rank()))
}

// RelativePositions learns a number for each head and distance of two places, in buckets that widen with the distance
// (Raffel et al. 2020): an [Attention.Bias].
type RelativePositions struct {
	Heads    int
	Buckets  int                       // 32 if 0
	Distance int                       // places from here on share a bucket; 128 if 0
	Causal   bool                      // only for earlier places; later ones are as near as the place itself
	Initial  model.VariableInitializer // "glorot_uniform" if nil
}

// Apply has the variable embeddings [buckets, heads]. It returns [1, heads, places, places] for x, [batch, places, n].
func (r RelativePositions) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(r, scope, x)
}

func (r RelativePositions) build(scope *model.Scope, x *graph.Node) *graph.Node {
	sequence("RelativePositions", scope, x)
	r.Buckets, r.Distance = cmp.Or(r.Buckets, 32), cmp.Or(r.Distance, 128)
	atLeastOne("RelativePositions", scope, "Heads", r.Heads)
	if r.Buckets < 4 || r.Buckets%4 != 0 || r.Distance <= r.Buckets/2 {
		fail("RelativePositions", scope, "%d buckets to the distance %d, expected a multiple of 4, and a distance above the half of it", r.Buckets, r.Distance)
	}
	table := variable(scope, x, "embeddings", r.Initial, glorotUniform, r.Buckets, r.Heads)
	n, g := x.Shape().Dimensions[1], x.Graph()
	buckets := make([]int32, 2*n-1) // by key − query + n − 1
	for i := range buckets {
		buckets[i] = r.bucket(i - n + 1)
	}
	square := shapes.Make(dtypes.Int32, n, n)
	at := graph.AddScalar(graph.Sub(graph.Iota(g, square, 1), graph.Iota(g, square, 0)), float64(n-1))
	rows := graph.Gather(table, graph.ExpandAxes(graph.Const(g, buckets), -1))
	return graph.ExpandAxes(graph.TransposeAllAxes(graph.Gather(rows, graph.ExpandAxes(at, -1)), 2, 0, 1), 0)
}

// bucket computes in float32, as torch: float64 has other buckets at some distances.
func (r RelativePositions) bucket(distance int) int32 {
	buckets, first := r.Buckets, 0
	if r.Causal {
		distance = max(-distance, 0)
	} else {
		buckets /= 2
		if distance > 0 {
			first = buckets
		}
		distance = max(distance, -distance)
	}
	exact := buckets / 2
	if distance < exact {
		return int32(first + distance)
	}
	far := float32(math.Log(float64(float32(distance) / float32(exact))))
	far = far / float32(math.Log(float64(r.Distance)/float64(exact))) * float32(buckets-exact)
	return int32(first + min(exact+int(far), buckets-1))
}
