package flaxlike

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Functional is a network with several inputs or outputs, by name. input returns a field of the batch. Apply each
// layer in its own scope: dense.Apply(scope.In("digit"), h).
//
// Any other layer is a network with the input "x" and the output "preds".
type Functional func(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node

// Apply uses a network of one input "x" and one output as a layer.
func (f Functional) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	out := f.outputs(scope, func(name string) *graph.Node {
		if name != "x" {
			panic(fmt.Errorf("a Functional in another layer has only the input \"x\", but it asks for %q", name))
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

func (f Functional) outputs(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
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

type weighted interface {
	nn.Layer
	Outputs(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node
	Weights() managed.Option
}

const preds = "preds"

const modelScope = "model"

func outputsOf(network nn.Layer, scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
	if f, ok := network.(Functional); ok {
		return f.outputs(scope, input)
	}
	x := input("x")
	if builtIn(network) {
		return map[string]*graph.Node{preds: network.Apply(scope, x)}
	}
	return map[string]*graph.Node{preds: layering.Run(network, true, true, scope, x, network.Apply)}
}

// kinds has the layers by their permanent names in files; two are of older ones.
var kinds = func() map[string]nn.Layer {
	all := map[string]nn.Layer{"PositionEmbedding": nn.Positions{}, "CausalAttention": nn.Attention{}}
	for _, l := range []nn.Layer{nn.Dense{}, nn.Conv{}, nn.DepthwiseConv{}, nn.SeparableConv{}, nn.ConvTranspose{}, nn.MaxPool{}, nn.MeanPool{}, nn.GlobalMeanPool{}, nn.GlobalMaxPool{}, nn.LastStep{},
		nn.Flatten{}, nn.Reshape{}, nn.Activation(""), nn.Dropout{}, nn.BatchNorm{}, nn.LayerNorm{}, nn.RMSNorm{}, nn.GroupNorm{},
		nn.Embedding{}, nn.Positions{}, nn.RelativePositions{}, nn.Sinusoidal{}, nn.Attention{}, nn.LSTM{}, nn.GRU{}, nn.SimpleRNN{},
		nn.Sequential{}, nn.Named{}, nn.Residual{}, nn.TimeDistributed{}, nn.L1{}, nn.L2{}, nn.WindowScale{}} {
		all[reflect.TypeOf(l).Name()] = l
	}
	return all
}()

func builtIn(l nn.Layer) bool {
	t := reflect.Indirect(reflect.ValueOf(l)).Type()
	of, ok := kinds[t.Name()]
	return ok && reflect.TypeOf(of) == t
}

func heldBy(l nn.Layer) (in []nn.Layer, holds bool) {
	switch l := l.(type) {
	case nn.Sequential:
		return l, true
	case nn.Residual:
		return l, true
	case nn.L1:
		return l.Layers, true
	case nn.L2:
		return l.Layers, true
	case nn.WindowScale:
		return l.Layers, true
	case nn.Named:
		return []nn.Layer{l.Layer}, true
	case nn.TimeDistributed:
		return []nn.Layer{l.Layer}, true
	}
	return nil, false
}

func holding(l nn.Layer, in []nn.Layer) (nn.Layer, error) {
	one := func(of func(nn.Layer) nn.Layer) (nn.Layer, error) {
		if len(in) != 1 {
			return nil, fmt.Errorf("it contains %d layers, expected one", len(in))
		}
		return of(in[0]), nil
	}
	switch l := l.(type) {
	case nn.Sequential:
		return nn.Sequential(in), nil
	case nn.Residual:
		return nn.Residual(in), nil
	case nn.L1:
		return nn.L1{Rate: l.Rate, Layers: in}, nil
	case nn.L2:
		return nn.L2{Rate: l.Rate, Layers: in}, nil
	case nn.WindowScale:
		return nn.WindowScale{Of: l.Of, Layers: in}, nil
	case nn.Named:
		return one(func(in nn.Layer) nn.Layer { return nn.Named{Name: l.Name, Layer: in} })
	case nn.TimeDistributed:
		return one(func(in nn.Layer) nn.Layer { return nn.TimeDistributed{Layer: in} })
	}
	return l, nil
}

func copied(l nn.Layer) nn.Layer {
	in, holds := heldBy(l)
	if !holds {
		return l
	}
	in = slices.Clone(in)
	for i := range in {
		in[i] = copied(in[i])
	}
	l, _ = holding(l, in)
	return l
}
