package nn

import (
	"cmp"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	gomlx "github.com/gomlx/gomlx/ml/nn"

	"github.com/lazo-ml/lazo/internal/layering"
)

// LayerNorm normalizes the last axis to mean 0 and variance 1 (Ba et al. 2016).
type LayerNorm struct {
	Epsilon  float64 // 1e-3 if 0
	NoOffset bool
}

// Apply has the variables gamma and, unless NoOffset, beta, [n].
func (l LayerNorm) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(l, scope, x) }

func (l LayerNorm) build(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("LayerNorm", scope, x, 1, "[batch, …, n]")
	return precise(x, func(x *graph.Node) *graph.Node {
		return l.normal(scope, x, func(v *graph.Node) *graph.Node {
			return gomlx.LayerNorm(v, []int{v.Rank() - 1}, epsilon(l.Epsilon, 1e-3), nil, nil, nil)
		})
	})
}

func (l LayerNorm) normal(scope *model.Scope, x *graph.Node, f func(x *graph.Node) *graph.Node) *graph.Node {
	wide, n := widened(x), x.Shape().Dimensions[x.Rank()-1]
	weight := func(name string, initial model.VariableInitializer) *graph.Node {
		return graph.ExpandLeftToRank(graph.ConvertDType(variable(scope, x, name, nil, initial, n), wide.DType()), x.Rank())
	}
	y := graph.Mul(f(wide), weight("gamma", graph.Ones))
	if !l.NoOffset {
		y = graph.Add(y, weight("beta", graph.Zeros))
	}
	return graph.ConvertDType(y, x.DType())
}

// RMSNorm divides by the root mean square of the last axis (Zhang and Sennrich 2019).
type RMSNorm struct {
	Epsilon float64 // 1e-6 if 0
	OnePlus bool    // multiplies by 1 + scale, which begins with 0, as in Gemma
}

// Apply has the variable scale, [n].
func (r RMSNorm) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(r, scope, x) }

func (r RMSNorm) build(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("RMSNorm", scope, x, 1, "[batch, …, n]")
	return precise(x, func(x *graph.Node) *graph.Node {
		wide := widened(x)
		mean := graph.ReduceAndKeep(graph.Square(wide), graph.ReduceMean, -1)
		y := graph.Mul(wide, graph.Rsqrt(graph.AddScalar(mean, epsilon(r.Epsilon, 1e-6))))
		initial, factor := graph.Ones, func(scale *graph.Node) *graph.Node { return scale }
		if r.OnePlus {
			initial, factor = graph.Zeros, graph.OnePlus
		}
		scale := variable(scope, x, "scale", nil, initial, x.Shape().Dimensions[x.Rank()-1])
		y = graph.Mul(y, graph.ExpandLeftToRank(factor(graph.ConvertDType(scale, wide.DType())), x.Rank()))
		return graph.ConvertDType(y, x.DType())
	})
}

// GroupNorm normalizes groups of channels over all spatial axes to mean 0 and variance 1, per example (Wu and He 2018):
// [batch, …, n].
type GroupNorm struct {
	Groups  int     // 32 if 0
	Epsilon float64 // 1e-3 if 0
}

// Apply has the variables gamma and beta, [n].
func (n GroupNorm) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(n, scope, x) }

func (n GroupNorm) build(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("GroupNorm", scope, x, 2, "[batch, …, n]")
	dims, groups := x.Shape().Dimensions, cmp.Or(n.Groups, 32)
	channels := dims[len(dims)-1]
	if groups < 1 || channels%groups != 0 {
		fail("GroupNorm", scope, "%d groups of %d channels, expected a divisor", groups, channels)
	}
	return precise(x, func(x *graph.Node) *graph.Node {
		return LayerNorm{}.normal(scope, x, func(v *graph.Node) *graph.Node {
			v = graph.Reshape(v, dims[0], -1, groups, channels/groups)
			return graph.Reshape(gomlx.LayerNorm(v, []int{1, 3}, epsilon(n.Epsilon, 1e-3), nil, nil, nil), dims...)
		})
	})
}

// precise builds in the parameters' dtype: sums in 16 bits lose precision.
func precise(x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node {
	if step := layering.StepOf(x); step != nil && x.DType().Size() < 4 {
		return step.FullPrecision(x, build)
	}
	return build(x)
}

func epsilon(given, standard float64) float64 { return cmp.Or(given, standard) }

func widened(x *graph.Node) *graph.Node {
	if x.DType().IsFloat() && x.DType().Size() < 4 {
		return graph.ConvertDType(x, dtypes.Float32)
	}
	return x
}

// WindowScale scales each window of a series by its own mean and standard deviation, column by column, applies its
// layers, and returns their output in the units of the column Of (reversible instance normalization without weights,
// Kim et al. 2022). x has shape [batch, time, columns], float32 or float64, the output [batch, …]. A constant column
// has scale 1.
//
// It is for series whose level moves, or of several scales. The labels must be in the units of the column Of: scale
// neither in a tables.Preparation.
type WindowScale struct {
	Of     int
	Layers []Layer
}

// Apply has the layers' variables, as [Sequential].
func (w WindowScale) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(w, scope, x) }

func (w WindowScale) build(scope *model.Scope, x *graph.Node) *graph.Node {
	const layer = "WindowScale"
	dims := x.Shape().Dimensions
	switch {
	case len(dims) != 3 || x.DType() != dtypes.Float32 && x.DType() != dtypes.Float64:
		fail(layer, scope, "the input is %s, expected windows [batch, time, columns] of float32 or float64: fewer bits would lose the digits of a level", x.Shape())
	case w.Of < 0 || w.Of >= dims[2]:
		fail(layer, scope, "Of is %d, and the input %s has %d columns", w.Of, x.Shape(), dims[2])
	case MaskOf(x) != nil:
		fail(layer, scope, "the input has a mask, expected whole windows")
	}
	mean := graph.ReduceAndKeep(x, graph.ReduceMean, 1)
	centred := graph.Sub(x, mean)
	scale := graph.Sqrt(graph.ReduceAndKeep(graph.Square(centred), graph.ReduceMean, 1))
	scale = graph.Where(graph.GreaterThan(scale, graph.ZerosLike(scale)), scale, graph.OnesLike(scale))
	y := chain(layer, w.Layers, scope, graph.Div(centred, scale))
	if y.Rank() < 2 || y.Shape().Dimensions[0] != dims[0] {
		fail(layer, scope, "the layers return %s, expected numbers for each example, [%d, …]", y.Shape(), dims[0])
	}
	own := func(of *graph.Node) *graph.Node {
		of = graph.Slice(of, graph.AxisRange(), graph.AxisRange(), graph.AxisElem(w.Of))
		return graph.ConvertDType(graph.Reshape(of, append([]int{dims[0]}, slices.Repeat([]int{1}, y.Rank()-1)...)...), y.DType())
	}
	return graph.Add(graph.Mul(y, own(scale)), own(mean))
}
