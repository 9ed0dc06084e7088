package autodiff

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
)

// closing is implemented by a backend's values whose operations have closures. In GoMLX, captured nodes are not inputs
// of If and While.
type closing interface {
	Captured() []compute.Value
	// Instead is called before the operation is rebuilt with the same closures, which then capture to[i] instead of
	// from[i]; end afterwards.
	Instead(from, to []compute.Value) (end func())
}

type nodesKey struct{}

type nodesOf struct {
	seen  int
	nodes map[compute.Value]*graph.Node
}

func (o *nodesOf) node(g *graph.Graph, v compute.Value) *graph.Node {
	all := g.Nodes()
	for _, n := range all[o.seen:] {
		if values := graph.InternalBackendOutputs(n); len(values) == 1 {
			o.nodes[values[0]] = n
		}
	}
	o.seen = len(all)
	return o.nodes[v]
}

// Neither graph nor backend report what such a node depends on.
func hidden(n *graph.Node) bool {
	if n.Type() != graph.NodeTypeIf && n.Type() != graph.NodeTypeWhile {
		return false
	}
	_, said := graph.InternalBackendOutputs(n)[0].(closing)
	return !said && !written(n)
}

func takenBy(n *graph.Node) []*graph.Node {
	if n.Type() != graph.NodeTypeIf && n.Type() != graph.NodeTypeWhile {
		return n.Inputs()
	}
	g := n.Graph()
	c, ok := graph.InternalBackendOutputs(n)[0].(closing)
	if !ok {
		if hidden(n) {
			panic(fmt.Errorf("autodiff: GoMLX's %v in the body of a loop or a branch of package ops: the backend %q does not say what its "+
				"closures take, expected an operation of package ops: use ops.Cond, ops.Switch, ops.Scan or ops.While", n.Type(), g.Backend().Name()))
		}
		return n.Inputs()
	}
	known, ok := g.State(nodesKey{}).(*nodesOf)
	if !ok {
		known = &nodesOf{nodes: map[compute.Value]*graph.Node{}}
		g.AttachState(nodesKey{}, known)
	}
	list := slices.Clone(n.Inputs())
	for _, v := range c.Captured() {
		in := known.node(g, v)
		if in == nil {
			panic(fmt.Errorf("autodiff: a closure of GoMLX's %v takes a value that is not a node of the graph %q", n.Type(), g.Name()))
		}
		if !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	return list
}

func (w rewritten) clone(n *graph.Node) *graph.Node {
	inputs := w.all(n.Inputs())
	if c, ok := graph.InternalBackendOutputs(n)[0].(closing); ok && len(c.Captured()) > 0 {
		var from, to []compute.Value
		for _, in := range takenBy(n) {
			if is := w.of(in); is != in {
				from, to = append(from, graph.InternalBackendOutputs(in)[0]), append(to, graph.InternalBackendOutputs(is)[0])
			}
		}
		defer c.Instead(from, to)()
	}
	return n.CloneWithInputs(inputs...)
}

type writtenKey struct{}

// Its inputs include all captures.
func noteWritten(of *graph.Node) {
	if of.Type() == graph.NodeTypeSplitNode {
		of = of.Inputs()[0]
	}
	known, ok := of.Graph().State(writtenKey{}).(map[*graph.Function]bool)
	if !ok {
		known = map[*graph.Function]bool{}
		of.Graph().AttachState(writtenKey{}, known)
	}
	known[attributesOf(of).function("body")] = true
}

func written(n *graph.Node) bool {
	known, _ := n.Graph().State(writtenKey{}).(map[*graph.Function]bool)
	return n.Type() == graph.NodeTypeWhile && known[attributesOf(n).function("body")]
}
