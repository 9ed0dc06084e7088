// Package autodiff replaces gradient rules of GoMLX v0.26.0 that cost more than they should.
//
// GoMLX keeps its rules in graph.VJPRegistration, a map that it documents as open to change. [Install] replaces some of
// its entries; docs/gradients.md says which, and what each costs before, after and in JAX. [Gradient] differentiates as
// graph.Gradient does, and lets the rules leave out what nobody asked for.
package autodiff

import (
	"maps"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// rule gives the gradients with respect to the inputs of a node of one output, v being the gradient with respect to that
// output. An input without a gradient, or whose gradient nobody [wants], gets nil.
type rule func(node, v *graph.Node) []*graph.Node

func rules() map[graph.NodeType]rule {
	return map[graph.NodeType]rule{
		graph.NodeTypeDot:          dot,
		graph.NodeTypeDotGeneral:   dotGeneral,
		graph.NodeTypeConvGeneral:  convolution,
		graph.NodeTypeReduceWindow: pooling,
		graph.NodeTypeReduceMax:    extremum,
		graph.NodeTypeReduceMin:    extremum,
		graph.NodeTypeMax:          larger,
		graph.NodeTypeMin:          smaller,
		graph.NodeTypeWhere:        where,
		graph.NodeTypeAdd:          add,
		graph.NodeTypeSub:          sub,
		graph.NodeTypeMul:          mul,
		graph.NodeTypeDiv:          div,
		graph.NodeTypePow:          pow,
		graph.NodeTypeSqrt:         sqrt,
		graph.NodeTypeLog:          log,
		graph.NodeTypeLog1p:        log1p,
		graph.NodeTypeAbs:          abs,
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
	for kind, r := range rules() {
		next[kind] = func(node *graph.Node, vs []*graph.Node, _ shapes.Shape) []*graph.Node { return r(node, vs[0]) }
	}
	graph.VJPRegistration = next
}
