// Package autodiff replaces gradient rules of GoMLX v0.28.8 that are wrong for some arguments or too slow.
//
// Importing it replaces rules in graph.VJPRegistration before main begins, for every gradient of the program, also
// those of GoMLX's trainer. internal/hlo and each package of lazo that builds graphs depend on it.
// docs/maintain/gradients.md lists the rules.
package autodiff

import (
	"maps"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// rule returns the gradients by the inputs of a node with one output, whose adjoint is v; nil: none. Unneeded nodes are
// dropped when the program is written.
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

// GoMLX lacks these rules.
func missing() map[graph.NodeType]rule {
	return map[graph.NodeType]rule{
		graph.NodeTypeReduceProduct:         productOfAll,
		graph.NodeTypeBatchNormForInference: normForInference,
		graph.NodeTypeClamp:                 clamp,
		graph.NodeTypeRsqrt:                 rsqrt,
		graph.NodeTypeExpm1:                 expm1,
		graph.NodeTypeRem:                   rem,
		graph.NodeTypeAtan2:                 atan2,
		graph.NodeTypeRound:                 level,
		graph.NodeTypeFloor:                 level,
		graph.NodeTypeCeil:                  level,
		graph.NodeTypeSign:                  level,
	}
}

var stock = maps.Clone(graph.VJPRegistration)

// It runs before anything reads GoMLX's map, in any order of package initialization.
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
