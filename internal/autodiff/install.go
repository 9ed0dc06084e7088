// Package autodiff replaces gradient rules of GoMLX v0.28.8 that are wrong for some arguments, or cost more than they
// should.
//
// GoMLX keeps its rules in graph.VJPRegistration, a map that it documents as open to change. A program that imports
// this package has its rules there before main begins, so every gradient has them, graph.Gradient's and those of
// GoMLX's trainer too. xla/hlo imports it, and each package of lazo that builds graphs. docs/maintain/gradients.md
// lists the replaced rules with the reason for each, and their costs in GoMLX, in lazo and in JAX.
package autodiff

import (
	"maps"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// rule gives the gradients with respect to the inputs of a node of one output, v being the gradient with respect to
// that output. An input without a gradient gets nil. All others get theirs, asked for or not: what leads to no output
// of a program is left out of it when it is written.
type rule func(node, v *graph.Node) []*graph.Node

func rules() map[graph.NodeType]rule {
	return map[graph.NodeType]rule{
		graph.NodeTypeDotGeneral:   dotGeneral,
		graph.NodeTypeConvGeneral:  convolution,
		graph.NodeTypeReduceWindow: pooling,
		graph.NodeTypeReduceMax:    extremum,
		graph.NodeTypeReduceMin:    extremum,
		graph.NodeTypeReduceSum:    unlessEmpty,
		graph.NodeTypeMul:          unlessEmpty,
		graph.NodeTypeMax:          larger,
		graph.NodeTypeMin:          smaller,
		graph.NodeTypeDiv:          div,
		graph.NodeTypePow:          pow,
		graph.NodeTypeLog:          log,
		graph.NodeTypeWhere:        chosen,
		graph.NodeTypePad:          pad,
		graph.NodeTypeExp:          ofResult,
		graph.NodeTypeTanh:         ofResult,
		graph.NodeTypeLogistic:     ofResult,
	}
}

// missing are the rules for operations of one output that GoMLX has none for; a Sort and a While have theirs beside
// them.
func missing() map[graph.NodeType]rule {
	return map[graph.NodeType]rule{
		graph.NodeTypeReduceProduct: productOfAll,
		graph.NodeTypeClamp:         clamp,
		graph.NodeTypeRsqrt:         rsqrt,
		graph.NodeTypeExpm1:         expm1,
		graph.NodeTypeRem:           rem,
		graph.NodeTypeAtan2:         atan2,
		graph.NodeTypeRound:         level,
		graph.NodeTypeFloor:         level,
		graph.NodeTypeCeil:          level,
		graph.NodeTypeSign:          level,
	}
}

// stock are GoMLX's own rules, for the cases that those of this package hand on.
var stock = maps.Clone(graph.VJPRegistration)

// The rules are replaced when the program starts: nothing reads GoMLX's map yet, and what runs first makes no
// difference to a gradient.
func init() {
	next := maps.Clone(graph.VJPRegistration)
	for _, list := range []map[graph.NodeType]rule{rules(), missing()} {
		for kind, r := range list {
			next[kind] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return r(node, vs[0]) }
		}
	}
	next[graph.NodeTypeSort] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return sorted(node, vs) }
	next[graph.NodeTypeWhile] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return whileGradient(node, vs) }
	next[graph.NodeTypeIf] = func(*graph.Node, []*graph.Node, shapes.Shape) []*graph.Node { panic(errClosure) }
	graph.VJPRegistration = next
}
