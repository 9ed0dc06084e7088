package autodiff

import (
	"sync"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Gradient returns the gradients of loss, a scalar, with respect to each of wrt, in their order and shapes. It gives what
// graph.Gradient gives, and panics as it does; but a gradient that leads to none of wrt is not built at all, where
// graph.Gradient builds it and drops it. A custom gradient that itself differentiates must call this function too.
func Gradient(loss *graph.Node, wrt ...*graph.Node) []*graph.Node {
	Install()
	g := loss.Graph()
	if g == nil {
		return graph.Gradient(loss, wrt...) // which panics
	}
	outer, nested := selections.Swap(g, newSelection(g, wrt))
	defer func() {
		if nested {
			selections.Store(g, outer)
		} else {
			selections.Delete(g)
		}
	}()
	return graph.Gradient(loss, wrt...)
}

// selections has an entry for each graph that is inside a call of [Gradient], and only for so long: a rule is given
// nothing but the node, so what was selected must be found through the node's graph.
var selections sync.Map // *graph.Graph → selection

// selection tells for each node, by its number, whether it is one of the selected nodes or computed from one.
type selection []bool

func newSelection(g *graph.Graph, wrt []*graph.Node) selection {
	nodes := g.Nodes()
	leads := make(selection, len(nodes))
	for _, n := range wrt {
		if n != nil && n.Graph() == g {
			leads[n.Id()] = true
		}
	}
	for i, n := range nodes { // inputs come before the nodes that use them
		if leads[i] || n.StopGradient() {
			continue
		}
		for _, input := range n.Inputs() {
			if leads[input.Id()] {
				leads[i] = true
				break
			}
		}
	}
	return leads
}

// wants tells whether the gradient with respect to the node's i-th input has a use. Outside of [Gradient] every one has.
func wants(node *graph.Node, i int) bool {
	found, ok := selections.Load(node.Graph())
	if !ok {
		return true
	}
	leads := found.(selection)
	this, input := int(node.Id()), int(node.Inputs()[i].Id())
	// A node that leads nowhere is visited only by a graph.Gradient nested in this one, whose selection is not known.
	return this >= len(leads) || !leads[this] || leads[input]
}
