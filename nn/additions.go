package nn

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

const additionsParam = "lazo.nn.additions"

type additions func(at *model.Scope) Layer

// Additions adds another layer's output for the same input to that of each Dense at a scope and below, also within
// [Attention], as an adapter (Hu et al. 2021). layer returns it for the Dense's scope, which both have, or nil. The
// sum is computed in the other layer's dtype. Call it before the layers are built.
func Additions(scope *model.Scope, g *graph.Graph, layer func(at *model.Scope) Layer) {
	scope.SetGraphParam(g, additionsParam, additions(layer))
}

func added(scope *model.Scope, x, y *graph.Node) *graph.Node {
	param, _ := scope.GetGraphParam(x.Graph(), additionsParam)
	layer, _ := param.(additions)
	if layer == nil {
		return y
	}
	l := layer(scope)
	if l == nil {
		return y
	}
	scope.SetGraphParam(x.Graph(), additionsParam, additions(nil)) // its own Denses get none
	z := l.Apply(scope, x)
	scope.SetGraphParam(x.Graph(), additionsParam, layer)
	if !z.Shape().EqualDimensions(y.Shape()) {
		fail("Dense", scope, "the layer of Additions returns %s for %s, expected the output's shape %s", z.Shape(), x.Shape(), y.Shape())
	}
	return graph.ConvertDType(graph.Add(graph.ConvertDType(y, z.DType()), z), y.DType())
}

const weightsParam = "lazo.nn.weights"

type weights func(at *model.Scope, name string) *graph.Node

// Weights computes layers' weights at a scope and below instead of variables, as of frozen ones stored in another form.
// weight returns that of a layer's scope and name, like "kernel", or nil. Call it before the layers are built.
func Weights(scope *model.Scope, g *graph.Graph, weight func(at *model.Scope, name string) *graph.Node) {
	scope.SetGraphParam(g, weightsParam, weights(weight))
}

func computed(scope *model.Scope, g *graph.Graph, name string, shape shapes.Shape) *graph.Node {
	param, _ := scope.GetGraphParam(g, weightsParam)
	weight, _ := param.(weights)
	if weight == nil {
		return nil
	}
	w := weight(scope, name)
	if w == nil {
		return nil
	}
	if !w.Shape().EqualDimensions(shape) {
		fail("a layer", scope, "Weights returns %s for %s, expected the shape %s", w.Shape(), name, shape)
	}
	return graph.ConvertDType(w, shape.DType)
}
