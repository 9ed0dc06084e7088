// Package layering is what a layer of package nn shares with the step and the model that it is built in: graph
// parameters, so that a layer's Apply needs neither of them.
package layering

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Step is the step of package managed that a layer is built in.
type Step interface {
	// DType is the type in which layers calculate.
	DType() dtypes.DType
	// FullPrecision builds a part in the type of the parameters.
	FullPrecision(x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node
	// Examples says which examples of a padded batch count, bool [batch]; nil if it is not padded.
	Examples() *graph.Node
	// Freezes tells whether the optimizer of a training step leaves a parameter as it is.
	Freezes(path string, shape shapes.Shape) bool
	// Normalised notes the count of steps of a batch normalisation that leaves the padding out.
	Normalised(count *model.Variable)
}

// Trace is the model whose network is being built.
type Trace interface {
	// Layer builds a layer and notes it. own tells that it is the user's, held that a layer of package nn holds it.
	Layer(layer any, own, held bool, scope *model.Scope, x *graph.Node, build Build) *graph.Node
	// Indices notes that the whole numbers of a node are to be from 0 to below n.
	Indices(x *graph.Node, n int)
}

// Build is the form of a layer's Apply.
type Build = func(scope *model.Scope, x *graph.Node) *graph.Node

const (
	stepParam  = "/lazo.layering.step"
	traceParam = "/lazo.layering.trace"
	masksParam = "/lazo.layering.masks"
)

// SetStep says which step a graph is of.
func SetStep(g *graph.Graph, s Step) { model.SetGraphParam(g, stepParam, s) }

// StepOf is the step of a node's graph; nil if it has none.
func StepOf(x *graph.Node) Step {
	param, _ := model.GetGraphParam(x, stepParam)
	s, _ := param.(Step)
	return s
}

// SetTrace says which model's network a graph is of.
func SetTrace(g *graph.Graph, t Trace) { model.SetGraphParam(g, traceParam, t) }

// TraceOf is the trace of a node's graph; nil if it has none.
func TraceOf(x *graph.Node) Trace {
	param, _ := model.GetGraphParam(x, traceParam)
	t, _ := param.(Trace)
	return t
}

// Run builds a layer, has the graph's trace note it, and hands the mask of its input on.
func Run(layer any, own, held bool, scope *model.Scope, x *graph.Node, build Build) (y *graph.Node) {
	if t := TraceOf(x); t != nil {
		y = t.Layer(layer, own, held, scope, x, build)
	} else {
		y = build(scope, x)
	}
	if y == nil {
		panic(fmt.Errorf("the layer %s in %s gives nil, expected a node", Kind(layer), scope.Scope()))
	}
	HandOn(x, y)
	return y
}

// Kind is the name of a layer's type, or of the function that is the layer or that made it.
func Kind(layer any) string {
	v := reflect.Indirect(reflect.ValueOf(layer))
	if v.Kind() != reflect.Func {
		return v.Type().Name()
	}
	f := runtime.FuncForPC(v.Pointer())
	if f == nil {
		return "layer"
	}
	name := strings.TrimSuffix(Closure.ReplaceAllString(f.Name(), ""), ".Apply") // nn.Dense{…}.Apply is a Dense
	return name[strings.LastIndexAny(name, "./")+1:]
}

// Closure is the end of the name of a function that has none of its own.
var Closure = regexp.MustCompile(`(\.func\d+|\.\d+|-fm)+$`)

// IsNil tells whether there is no layer, or no function in it.
func IsNil(layer any) bool {
	if layer == nil {
		return true
	}
	v := reflect.ValueOf(layer)
	return (v.Kind() == reflect.Func || v.Kind() == reflect.Pointer) && v.IsNil()
}

// Masks are the masks of a graph's sequences, bool [batch, places].
func Masks(x *graph.Node) map[*graph.Node]*graph.Node {
	if found, ok := model.GetGraphParam(x, masksParam); ok {
		return found.(map[*graph.Node]*graph.Node)
	}
	all := map[*graph.Node]*graph.Node{}
	model.SetGraphParam(x.Graph(), masksParam, all)
	return all
}

// HandOn gives an output the mask of the input, unless it has one of its own, or other places.
func HandOn(x, y *graph.Node) {
	all := Masks(x)
	mask := all[x]
	if _, own := all[y]; own || mask == nil || y.Rank() < 3 || mask.Shape().CheckDims(y.Shape().Dimensions[:2]...) != nil {
		return
	}
	all[y] = mask
}
