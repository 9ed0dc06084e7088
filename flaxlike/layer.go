package flaxlike

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
)

// Layer is a graph function with variables: from a node to the next one. Any function of this form is a layer, so own
// layers are plain functions, and all of GoMLX's are at hand:
//
//	func gated(scope *managed.Scope, x *managed.Node) *managed.Node {
//		return graph.Mul(layers.Dense(scope.In("value"), x, true, 64), graph.Sigmoid(layers.Dense(scope.In("gate"), x, true, 64)))
//	}
//
// As the whole of a model, a layer maps the field "x" to the one output "preds".
type Layer func(scope *managed.Scope, x *managed.Node) *managed.Node

// Functional is a model of several inputs or outputs: input gives a field of the batch by its name, and the outputs are
// nodes by name. It is built out of layers, each in a scope of its own:
//
//	func(scope *managed.Scope, input func(name string) *managed.Node) map[string]*managed.Node {
//		h := trunk(scope.In("trunk"), input("image"))
//		return map[string]*managed.Node{"digit": digits(scope.In("digit"), h), "slant": slant(scope.In("slant"), h)}
//	}
type Functional func(scope *managed.Scope, input func(name string) *managed.Node) map[string]*managed.Node

// Network is what a model is made of: a [Layer] or a [Functional].
type Network interface {
	outputs(scope *managed.Scope, input func(name string) *managed.Node) map[string]*managed.Node
}

// preds is the output of a network that has only one.
const preds = "preds"

func (l Layer) outputs(scope *managed.Scope, input func(string) *managed.Node) map[string]*managed.Node {
	return map[string]*managed.Node{preds: traced(l, scope, input("x"))}
}

func (f Functional) outputs(scope *managed.Scope, input func(string) *managed.Node) map[string]*managed.Node {
	out := f(scope, input)
	if len(out) == 0 {
		panic(fmt.Errorf("the network has no output: return at least one node by name"))
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if out[name] == nil {
			panic(fmt.Errorf("the network's output %q is nil", name))
		}
	}
	return out
}

// Sequential is one layer behind the other. The variables of each are in a scope of its place, counted from 0:
// /model/0/kernel.
func Sequential(layers ...Layer) Layer {
	layers = slices.Clone(layers)
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		for i, l := range layers {
			if l == nil {
				panic(fmt.Errorf("layer %d of %d in Sequential is nil (counted from 0)", i, len(layers)))
			}
			x = traced(l, scope.In("%d", i), x)
		}
		return x
	}
}

// Named puts the variables of a layer into a scope of that name. Two layers of one name in one scope share their
// variables.
func Named(name string, layer Layer) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return traced(layer, scope.At("%s", name), x)
	}
}

// Residual adds what the layers, one behind the other, make of their input to it (He et al. 2016). The shape must stay.
func Residual(layers ...Layer) Layer {
	inner := Sequential(layers...)
	return part("Residual", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		y := inner(scope, x)
		if !y.Shape().Equal(x.Shape()) {
			panic(fmt.Errorf("Residual in %s: the layers make %s of %s; they must keep the shape, so that both can be added", scope.Scope(), y.Shape(), x.Shape()))
		}
		return graph.Add(x, y)
	})
}
