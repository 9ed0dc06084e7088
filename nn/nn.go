package nn

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
)

// variable refuses a second layer at one scope.
func variable(scope *model.Scope, like *graph.Node, name string, initial, standard model.VariableInitializer, dims ...int) *graph.Node {
	scope.In("%s", name)
	return value(scope, like.Graph(), name, initial, standard, shapes.Make(like.DType(), dims...))
}

func value(scope *model.Scope, g *graph.Graph, name string, initial, standard model.VariableInitializer, shape shapes.Shape) *graph.Node {
	if w := computed(scope, g, name, shape); w != nil {
		return w
	}
	if initial == nil {
		initial = standard
		if of, ok := scope.Store().RootScope().GetGraphParam(g, kernelsParam); ok && kernelNames[name] {
			initial = of.(*kernels).take(scope, standard)
		}
	}
	v := scope.WithInitializer(initial).VariableWithShape(name, shape)
	weights, once := v.NodeValue(g), "lazo.nn.penalized "+v.Path() // a shared layer has one penalty
	if _, done := scope.GetGraphParam(g, once); !done && strings.HasSuffix(name, "kernel") {
		penalize(scope, weights)
		scope.SetGraphParam(g, once, true)
	}
	return weights
}

// penalize, unlike GoMLX's L1, does not set small weights to 0.
func penalize(scope *model.Scope, weights *graph.Node) {
	if rate := model.GetParamOr(scope, regularizer.ParamL2, 0.0); rate > 0 {
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Square(weights)), rate))
	}
	if rate := model.GetParamOr(scope, regularizer.ParamL1, 0.0); rate > 0 {
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Abs(weights)), rate))
	}
}

// Dropout sets elements to 0 with probability Rate in training, and scales the others up (Srivastava et al. 2014).
type Dropout struct{ Rate float64 }

func (d Dropout) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(d, scope, x) }

func (d Dropout) build(scope *model.Scope, x *graph.Node) *graph.Node {
	checkRate("Dropout", scope, d.Rate)
	return layers.DropoutStatic(scope, x, d.Rate)
}

func checkRate(layer string, scope *model.Scope, rate float64) {
	if !(rate >= 0 && rate < 1) {
		fail(layer, scope, "the rate of dropout is %v, expected a share from 0 to below 1", rate)
	}
}

func fail(layer string, scope *model.Scope, format string, values ...any) {
	panic(fmt.Errorf("nn: %s in %s: %w", layer, scope.Scope(), fmt.Errorf(format, values...)))
}

func atLeastOne(layer string, scope *model.Scope, what string, n int) {
	if n < 1 {
		fail(layer, scope, "%s is %d, expected at least 1", what, n)
	}
}

func floats(layer string, scope *model.Scope, x *graph.Node, rank int, axes string) {
	switch {
	case !x.DType().IsFloat():
		fail(layer, scope, "the input is %s, expected floating-point numbers %s: give the field as []float32, or begin with an Embedding", x.Shape(), axes)
	case x.Rank() < rank:
		fail(layer, scope, "the input is %s, expected floating-point numbers %s: see Reshape", x.Shape(), axes)
	}
}

func sequence(layer string, scope *model.Scope, x *graph.Node) {
	if !x.DType().IsFloat() || x.Rank() != 3 {
		fail(layer, scope, "the input is %s, expected floating-point numbers [batch, places, n]: see Reshape and Embedding", x.Shape())
	}
}
