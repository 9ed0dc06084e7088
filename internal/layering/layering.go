// Package layering passes the step and the model to package nn's layers as graph parameters.
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

// Step is package managed's.
type Step interface {
	// DType is that in which layers compute.
	DType() dtypes.DType
	FullPrecision(x *graph.Node, build func(x *graph.Node) *graph.Node) *graph.Node
	Fields() []string
	Training() bool
	// Examples are a padded batch's real ones, bool [batch], or nil without padding.
	Examples() *graph.Node
	// Freezes reports whether the optimizer leaves a parameter unchanged.
	Freezes(path string, shape shapes.Shape) bool
	Ended() error
	// Normalised records the step count of a batch normalization that ignores padding.
	Normalised(count *model.Variable)
}

type Trace interface {
	// Layer builds and records a layer: own: the user's; held: in a layer of package nn.
	Layer(layer any, own, held bool, scope *model.Scope, x *graph.Node, build Build) *graph.Node
	// Indices records that a node's integers must be in [0, n).
	Indices(x *graph.Node, n int)
}

// Build has the signature of a layer's Apply.
type Build = func(scope *model.Scope, x *graph.Node) *graph.Node

const (
	stepParam  = "/lazo.layering.step"
	traceParam = "/lazo.layering.trace"
	masksParam = "/lazo.layering.masks"
)

func SetStep(g *graph.Graph, s Step) { model.SetGraphParam(g, stepParam, s) }

func StepOf(x *graph.Node) Step {
	param, _ := model.GetGraphParam(x, stepParam)
	s, _ := param.(Step)
	return s
}

func SetTrace(g *graph.Graph, t Trace) { model.SetGraphParam(g, traceParam, t) }

func TraceOf(x *graph.Node) Trace {
	param, _ := model.GetGraphParam(x, traceParam)
	t, _ := param.(Trace)
	return t
}

func Run(layer any, own, held bool, scope *model.Scope, x *graph.Node, build Build) (y *graph.Node) {
	if s := StepOf(x); s != nil {
		if err := s.Ended(); err != nil {
			panic(err)
		}
	}
	if t := TraceOf(x); t != nil {
		y = t.Layer(layer, own, held, scope, x, build)
	} else {
		y = build(scope, x)
	}
	if y == nil {
		panic(fmt.Errorf("the layer %s in %s returned nil, expected a node", Kind(layer), scope.Scope()))
	}
	HandOn(x, y)
	return y
}

// Kind returns the name of a layer's type, or of the function that is or made the layer.
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

var Closure = regexp.MustCompile(`(\.func\d+|\.\d+|-fm)+$`)

// IsNil reports whether layer is nil or contains a nil function.
func IsNil(layer any) bool {
	if layer == nil {
		return true
	}
	v := reflect.ValueOf(layer)
	return (v.Kind() == reflect.Func || v.Kind() == reflect.Pointer) && v.IsNil()
}

// Masks returns a graph's masks of sequences, bool [batch, places].
func Masks(x *graph.Node) map[*graph.Node]*graph.Node {
	if found, ok := model.GetGraphParam(x, masksParam); ok {
		return found.(map[*graph.Node]*graph.Node)
	}
	all := map[*graph.Node]*graph.Node{}
	model.SetGraphParam(x.Graph(), masksParam, all)
	return all
}

// HandOn sets an output's mask to its input's, unless it has its own or other places.
func HandOn(x, y *graph.Node) {
	all := Masks(x)
	mask := all[x]
	if _, own := all[y]; own || mask == nil || y.Rank() < 3 || mask.Shape().CheckDims(y.Shape().Dimensions[:2]...) != nil {
		return
	}
	all[y] = mask
}
