package flaxlike

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Layer is a part of a network, or a whole one: a value with settings, whose Apply builds it in the graph of a step,
// from a node to the next one. Its variables are made at the scope.
//
// Layers are those of this package, those of package nn, which are the same as [Of] them, and a program's own: a
// function as a [Func], or a type with settings of its own:
//
//	type gated struct{ Units int }
//
//	func (g gated) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
//		value, gate := flaxlike.Dense(g.Units), flaxlike.Dense(g.Units)
//		return graph.Mul(value.Apply(scope.In("value"), x), graph.Sigmoid(gate.Apply(scope.In("gate"), x)))
//	}
//
// As the whole of a model, a layer maps the field "x" to the one output "preds"; a [Functional] has several.
type Layer interface {
	Apply(scope *managed.Scope, x *managed.Node) *managed.Node
}

// Func is a layer of code: any function of this form, as those of GoMLX.
type Func func(scope *managed.Scope, x *managed.Node) *managed.Node

// Apply calls the function.
func (f Func) Apply(scope *managed.Scope, x *managed.Node) *managed.Node { return f(scope, x) }

// Functional is a model of several inputs or outputs: input gives a field of the batch by its name, and the outputs are
// nodes by name. It is built out of layers, each in a scope of its own:
//
//	func(scope *managed.Scope, input func(name string) *managed.Node) map[string]*managed.Node {
//		h := trunk.Apply(scope.In("trunk"), input("image"))
//		return map[string]*managed.Node{"digit": digits.Apply(scope.In("digit"), h), "slant": slant.Apply(scope.In("slant"), h)}
//	}
type Functional func(scope *managed.Scope, input func(name string) *managed.Node) map[string]*managed.Node

// Apply is the network as a layer of another one, for a network with the one input "x" and one output.
func (f Functional) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	out := f.outputs(scope, func(name string) *managed.Node {
		if name != "x" {
			panic(fmt.Errorf("a Functional in another layer has the one input \"x\", and it asks for %q", name))
		}
		return x
	})
	if len(out) != 1 {
		panic(fmt.Errorf("a Functional in another layer has one output, expected one of %q", slices.Sorted(maps.Keys(out))))
	}
	for _, only := range out {
		return only
	}
	return nil
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

// preds is the output of a network that has only one.
const preds = "preds"

// outputsOf builds a network.
func outputsOf(network Layer, scope *managed.Scope, input func(string) *managed.Node) map[string]*managed.Node {
	if f, ok := network.(Functional); ok {
		return f.outputs(scope, input)
	}
	return map[string]*managed.Node{preds: traced(network, scope, input("x"))}
}

// isNil tells whether there is no layer, or no function in it.
func isNil(l Layer) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return (v.Kind() == reflect.Func || v.Kind() == reflect.Pointer) && v.IsNil()
}

// Sequential is one layer behind the other. The variables of each are in a scope of its place, counted from 0:
// /model/0/kernel.
func Sequential(layers ...Layer) Layer { return sequential{slices.Clone(layers)} }

type sequential struct{ layers []Layer }

func (s sequential) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	for i, l := range s.layers {
		if isNil(l) {
			panic(fmt.Errorf("layer %d of %d in Sequential is nil (counted from 0)", i, len(s.layers)))
		}
		x = traced(l, scope.In("%d", i), x)
	}
	return x
}

// Named puts the variables of a layer into a scope of that name. Two layers of one name in one scope, as a [Functional]
// or a [Func] has it, share their variables; those in a [Sequential] do not, for each place there is a scope.
func Named(name string, layer Layer) Layer { return named{name, layer} }

type named struct {
	Name  string
	layer Layer
}

func (n named) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return traced(n.layer, scope.At("%s", n.Name), x)
}

// Residual adds what the layers, one behind the other, make of their input to it (He et al. 2016). The shape must stay.
func Residual(layers ...Layer) Layer {
	return made("Residual", residual{sequential{slices.Clone(layers)}})
}

type residual struct{ sequential }

func (r residual) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	y := r.sequential.Apply(scope, x)
	if !y.Shape().Equal(x.Shape()) {
		panic(fmt.Errorf("Residual in %s: the layers make %s of %s; they must keep the shape, so that both can be added", scope.Scope(), y.Shape(), x.Shape()))
	}
	return graph.Add(x, y)
}

// part is a layer of this package or of package nn: it has its row in the [Summary] wherever it is run, and an error in
// it says the line where it was made.
type part struct {
	Layer
	kind, line string
}

func (p part) Apply(scope *managed.Scope, x *managed.Node) (y *managed.Node) {
	t := traceOf(scope, x)
	inner := t.inner
	t.inner = false
	graphs.From(p.line, func() {
		if inner || t.own == 0 {
			y = t.row(p.kind, p.build, scope, x)
		} else {
			y = p.build(scope, x)
		}
	})
	handOn(x, y)
	return y
}

// parts are the layers of this package and of package nn by their kinds, without settings. The kinds are in saved
// files: they stay.
var parts = map[string]Layer{
	"Dense": nn.Dense{}, "Conv": nn.Conv{}, "DepthwiseConv": nn.DepthwiseConv{}, "SeparableConv": nn.SeparableConv{},
	"ConvTranspose": nn.ConvTranspose{}, "MaxPool": maxPool{}, "MeanPool": meanPool{}, "GlobalMeanPool": globalMeanPool{},
	"Flatten": flatten{}, "Reshape": reshape{}, "Activation": activate{}, "Dropout": dropout{},
	"BatchNorm": batchNorm{}, "LayerNorm": nn.LayerNorm{}, "RMSNorm": nn.RMSNorm{}, "GroupNorm": nn.GroupNorm{},
	"Embedding": nn.Embedding{}, "Positions": nn.Positions{}, "PositionEmbedding": nn.Positions{},
	"Attention": nn.Attention{}, "CausalAttention": nn.Attention{}, "LSTM": lstm{}, "GRU": gru{}, "SimpleRNN": simpleRNN{},
	"TimeDistributed": timeDistributed{}, "Residual": residual{}, "L1": l1{}, "L2": l2{},
}

// made is a part that the program makes at the line that calls this package.
func made(kind string, l Layer) Layer { return part{l, kind, graphs.Caller()} }

// known is a layer of package nn as [Of] it, and any other as it is.
func known(l Layer) Layer {
	v := reflect.Indirect(reflect.ValueOf(l))
	if kind := v.Type().Name(); parts[kind] != nil && reflect.TypeOf(parts[kind]) == v.Type() {
		return part{Layer: v.Interface().(Layer), kind: kind}
	}
	return l
}
