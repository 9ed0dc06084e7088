package nn

import (
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
	DType             dtypes.DType              // of the vectors; the step's if 0: float32 or a policy's
}

// Apply has the variable embeddings [vocabulary, width]. An id outside the vocabulary gives NaN; in a model of package
// flaxlike it is an error before the step if the ids are a field of the batch. With Padding, Apply sets the mask
// [batch, places] of a sequence ([MaskOf]).
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
// …, vocabulary]. Call it at the scope of Apply. The padding id's logit is 0.
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

// table uses the dtype of an existing variable, which a policy may have converted.
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
	Start   *graph.Node               // the first place's number, an integer scalar; 0 if nil
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
	rows := graph.DynamicSlice(table, []*graph.Node{start, graph.Scalar(x.Graph(), dtypes.Int32, 0)}, []int{places, n})
	return within(start, places, p.Length, graph.Add(x, graph.ExpandAxes(rows, 0)))
}

func within(start *graph.Node, places, length int, x *graph.Node) *graph.Node {
	fits := graph.LogicalAnd(graph.LessOrEqual(graph.AddScalar(start, float64(places)), graph.Scalar(x.Graph(), start.DType(), length)),
		graph.GreaterOrEqual(start, graph.ScalarZero(x.Graph(), start.DType())))
	return graph.Where(fits, x, graph.BroadcastToDims(graph.Scalar(x.Graph(), x.DType(), math.NaN()), x.Shape().Dimensions...))
}

// Sinusoidal adds sines and cosines of each place, interleaved along the last axis, with wavelengths from 2π to
// 10,000·2π (Vaswani et al. 2017): [batch, places, n], for even n.
type Sinusoidal struct {
	Start *graph.Node // the first place's number, an integer scalar; 0 if nil
}

func (w Sinusoidal) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(w, scope, x) }

func (w Sinusoidal) build(scope *model.Scope, x *graph.Node) *graph.Node {
	sequence("Sinusoidal", scope, x)
	places, n := x.Shape().Dimensions[1], x.Shape().Dimensions[2]
	if n%2 != 0 {
		fail("Sinusoidal", scope, "the input is %s, expected an even number in its last axis", x.Shape())
	}
	a := angles(x, w.Start, places, n, 1e4)
	waves := graph.Reshape(graph.Stack([]*graph.Node{graph.Sin(a), graph.Cos(a)}, -1), 1, places, n)
	return graph.Add(x, graph.ConvertDType(waves, x.DType()))
}

// angles returns place·base^(-2i/n), [places, n/2], in at least float32: 16 bits do not distinguish distant places.
func angles(x, start *graph.Node, places, n int, base float64) *graph.Node {
	g, t := x.Graph(), widened(x).DType()
	at := graph.Iota(g, shapes.Make(t, places, n/2), 0)
	if start != nil {
		at = graph.Add(at, graph.ConvertDType(start, t))
	}
	rates := make([]float64, n/2)
	for i := range rates {
		rates[i] = math.Pow(base, -2*float64(i)/float64(n))
	}
	return graph.Mul(at, graph.ExpandAxes(graph.ConvertDType(graph.Const(g, rates), t), 0))
}
