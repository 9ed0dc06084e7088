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

type (
	// Scope is a place among the named variables of a model.
	Scope = model.Scope
	// Graph is a program being built.
	Graph = graph.Graph
	// Node is a value of a graph.
	Node = graph.Node
	// Shape is the type and the dimensions of a value.
	Shape = shapes.Shape
)

// variable is a layer's variable right below its scope. A second layer at one scope is refused, as GoMLX's layers
// refuse it. A kernel has the scope's penalty on weights.
func variable(scope *Scope, like *Node, name string, initial, standard Initializer, dims ...int) *Node {
	scope.In("%s", name)
	return value(scope, like.Graph(), name, initial, standard, shapes.Make(like.DType(), dims...))
}

func value(scope *Scope, g *Graph, name string, initial, standard Initializer, shape Shape) *Node {
	if initial == nil {
		initial = standard
		if of, ok := scope.Store().RootScope().GetGraphParam(g, kernelsParam); ok && kernelNames[name] {
			initial = of.(*kernels).take(scope, standard)
		}
	}
	v := scope.WithInitializer(initial).VariableWithShape(name, shape)
	weights, once := v.NodeValue(g), "lazo.nn.penalized "+v.Path() // a layer that is used twice has one penalty
	if _, done := scope.GetGraphParam(g, once); !done && strings.HasSuffix(name, "kernel") {
		penalize(scope, weights)
		scope.SetGraphParam(g, once, true)
	}
	return weights
}

// penalize adds the scope's penalties on weights to what is trained on. They are no more than that: GoMLX's own L1 also
// sets small weights to 0 after each step.
func penalize(scope *Scope, weights *Node) {
	if rate := model.GetParamOr(scope, regularizer.ParamL2, 0.0); rate > 0 {
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Square(weights)), rate))
	}
	if rate := model.GetParamOr(scope, regularizer.ParamL1, 0.0); rate > 0 {
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Abs(weights)), rate))
	}
}

// Relu is x where it is above 0, and else 0. Its slope at 0 is 0.
func Relu(x *Node) *Node {
	return graph.Max(graph.ScalarZero(x.Graph(), x.DType()), x) // at a tie the slope is the first operand's
}

// Dropout sets a share of the numbers to 0 while training, and scales the others up (Srivastava et al. 2014). It is
// GoMLX's layers.DropoutStatic, with a rate that is looked at.
func Dropout(scope *Scope, x *Node, rate float64) *Node {
	checkRate("Dropout", scope, rate)
	return layers.DropoutStatic(scope, x, rate)
}

func checkRate(layer string, scope *Scope, rate float64) {
	if !(rate >= 0 && rate < 1) {
		fail(layer, scope, "the rate of dropout is %v, expected a share from 0 to below 1", rate)
	}
}

func fail(layer string, scope *Scope, format string, values ...any) {
	panic(fmt.Errorf("nn: %s in %s: %w", layer, scope.Scope(), fmt.Errorf(format, values...)))
}

func atLeastOne(layer string, scope *Scope, what string, n int) {
	if n < 1 {
		fail(layer, scope, "%s is %d, expected at least 1", what, n)
	}
}

func floats(layer string, scope *Scope, x *Node, rank int, axes string) {
	if !x.DType().IsFloat() || x.Rank() < rank {
		fail(layer, scope, "the input is %s, expected floating-point numbers %s", x.Shape(), axes)
	}
}

func sequence(layer string, scope *Scope, x *Node) {
	if !x.DType().IsFloat() || x.Rank() != 3 {
		fail(layer, scope, "the input is %s, expected floating-point numbers [batch, places, n]", x.Shape())
	}
}

// PlacesMask says which places of sequences count, [batch, places] of bool: mask itself if it is that, or the first
// ones where it has their number for each example, [batch] of whole numbers.
func PlacesMask(mask *Node, batch, places int) *Node {
	if !fitsPlaces(mask, batch, places) {
		panic(fmt.Errorf("nn: %w", wrongMask(mask, batch, places)))
	}
	if mask.Rank() == 1 {
		at := graph.Iota(mask.Graph(), shapes.Make(mask.DType(), batch, places), 1)
		return graph.LessThan(at, graph.BroadcastToDims(graph.Reshape(mask, batch, 1), batch, places))
	}
	return mask
}

func wrongMask(mask *Node, batch, places int) error {
	return fmt.Errorf("the mask is %s, expected lengths, whole numbers [%d], or bool [%[2]d, %d]", mask.Shape(), batch, places)
}

// placesMask is PlacesMask of a layer's setting.
func placesMask(layer string, scope *Scope, mask *Node, batch, places int) *Node {
	if !fitsPlaces(mask, batch, places) {
		fail(layer, scope, "%w", wrongMask(mask, batch, places))
	}
	return PlacesMask(mask, batch, places)
}

// fitsPlaces tells whether a mask is lengths or places of so many sequences.
func fitsPlaces(mask *Node, batch, places int) bool {
	return mask.Shape().CheckDims(batch) == nil && mask.DType().IsInt() || mask.Shape().CheckDims(batch, places) == nil && mask.DType() == boolean
}
