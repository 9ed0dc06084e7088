package nn

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
)

// Layer is part of a network or a whole one. Apply builds it in the graph of a step, with variables at the scope.
// Package flaxlike trains a Layer as a model.
//
// A custom layer is a [Func], or a type with settings (docs/layers.md). A layer with several inputs is a function that
// the step calls, or a flaxlike Functional.
type Layer interface {
	Apply(scope *model.Scope, x *graph.Node) *graph.Node
}

// Func is a function as a [Layer].
type Func func(scope *model.Scope, x *graph.Node) *graph.Node

func (f Func) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return f(scope, x) }

type builtIn interface {
	Layer
	build(scope *model.Scope, x *graph.Node) *graph.Node
}

func apply(l builtIn, scope *model.Scope, x *graph.Node) *graph.Node {
	return layering.Run(l, false, false, scope, x, l.build)
}

func inside(l Layer, scope *model.Scope, x *graph.Node) *graph.Node {
	switch of := l.(type) {
	case Sequential, Named: // their own layers are recorded
		return l.Apply(scope, x)
	case builtIn:
		return layering.Run(of, false, true, scope, x, of.build)
	default:
		return layering.Run(l, true, true, scope, x, l.Apply)
	}
}

// Sequential applies layers in order. The variables of each are in a scope of its index, from 0: /model/0/kernel.
type Sequential []Layer

func (s Sequential) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return chain("Sequential", s, scope, x)
}

func chain(layer string, layers []Layer, scope *model.Scope, x *graph.Node) *graph.Node {
	for i, l := range layers {
		if layering.IsNil(l) {
			fail(layer, scope, "layer %d of %d is nil (counted from 0)", i, len(layers))
		}
		x = inside(l, scope.In("%d", i), x)
	}
	return x
}

// Named puts a layer's variables into a scope of this name. Two layers of one name in one scope share variables, except
// in a [Sequential].
type Named struct {
	Name  string
	Layer Layer
}

func (n Named) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	if layering.IsNil(n.Layer) {
		fail("Named", scope, "the layer of %q is nil", n.Name)
	}
	return inside(n.Layer, scope.At("%s", n.Name), x)
}

// Residual adds the output of its layers, applied in order, to its input, of the same shape (He et al. 2016).
type Residual []Layer

// Apply has the layers' variables, as [Sequential].
func (r Residual) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(r, scope, x) }

func (r Residual) build(scope *model.Scope, x *graph.Node) *graph.Node {
	y := chain("Residual", r, scope, x)
	if !y.Shape().Equal(x.Shape()) {
		fail("Residual", scope, "the layers change the shape: output %s for input %s: expected the same shape, so that both can be added", y.Shape(), x.Shape())
	}
	return graph.Add(x, y)
}

// TimeDistributed applies a layer to each place of a sequence with the same variables: [batch, places, n…] to [batch,
// places, …]. An input [batch, places] must be integers, for an [Embedding].
type TimeDistributed struct{ Layer Layer }

// Apply has the layer's variables.
func (d TimeDistributed) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(d, scope, x)
}

func (d TimeDistributed) build(scope *model.Scope, x *graph.Node) *graph.Node {
	const layer = "TimeDistributed"
	if layering.IsNil(d.Layer) {
		fail(layer, scope, "the layer is nil")
	}
	if x.Rank() < 2 || x.Rank() == 2 && x.DType().IsFloat() {
		fail(layer, scope, "the input is %s, expected [batch, places, n] or more axes: see Reshape and Embedding", x.Shape())
	}
	dims := x.Shape().Dimensions
	y := inside(d.Layer, scope, graph.Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...))
	if y.Rank() == 0 || y.Shape().Dimensions[0] != dims[0]*dims[1] {
		fail(layer, scope, "the layer returns %s for %d places, expected a row for each place, [%[2]d, …]", y.Shape(), dims[0]*dims[1])
	}
	return graph.Reshape(y, append([]int{dims[0], dims[1]}, y.Shape().Dimensions[1:]...)...)
}

// L2 adds a penalty on its layers' kernels to the loss: the rate times the sum of their squares. aux_loss logs it.
type L2 struct {
	Rate   float64
	Layers []Layer
}

// Apply has the layers' variables, as [Sequential].
func (p L2) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(p, scope, x) }

func (p L2) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return chain("L2", p.Layers, penalized(scope, "L2", regularizer.ParamL2, p.Rate), x)
}

// L1 is [L2] with absolute values instead of squares.
type L1 struct {
	Rate   float64
	Layers []Layer
}

// Apply has the layers' variables, as [Sequential].
func (p L1) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(p, scope, x) }

func (p L1) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return chain("L1", p.Layers, penalized(scope, "L1", regularizer.ParamL1, p.Rate), x)
}

func penalized(scope *model.Scope, layer, param string, rate float64) *model.Scope {
	if !(rate >= 0 && rate < 1e30) { // also refuses NaN
		fail(layer, scope, "the rate is %v, expected a finite number of at least 0", rate)
	}
	scope.SetParam(param, rate)
	return scope
}
