// Package autodiff replaces gradient rules of GoMLX v0.28.8 that are wrong for some arguments, or cost more than they
// should.
//
// GoMLX keeps its rules in graph.VJPRegistration, a map that it documents as open to change. [Install] replaces some of
// its entries; docs/gradients.md says which and why, and what each costs before, after and in JAX.
package autodiff

import (
	"maps"
	"sync"

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

// Install puts the rules of this package in the place of GoMLX's, for the whole process. Only the first call does
// something. It must not run while another goroutine builds a gradient: packages that build graphs call it when they
// start, and [Gradient] calls it too.
func Install() { install.Do(replaceRules) }

var install sync.Once

func replaceRules() {
	// GoMLX reads the map without a lock: a new map leaves a reader of the old one unharmed.
	next := maps.Clone(graph.VJPRegistration)
	for _, list := range []map[graph.NodeType]rule{rules(), missing()} {
		for kind, r := range list {
			next[kind] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return r(node, vs[0]) }
		}
	}
	next[graph.NodeTypeSort] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return sorted(node, vs) }
	next[graph.NodeTypeWhile] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return whileGradient(node, vs) }
	graph.VJPRegistration = next
}
