package autodiff

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// traced is the part of a graph between some nodes and what was computed from them: a function that can be rewritten
// again, as the body of a loop, with other nodes in the place of its parameters.
type traced struct {
	params, outputs []*graph.Node
	nodes           []*graph.Node // that lie between, in the order in which they were made
	captured        []*graph.Node // what the nodes take besides the parameters, without constants
}

// parametersLike are the parameters of a closure that takes values of these shapes.
func parametersLike(g *graph.Graph, values []*graph.Node) []*graph.Node {
	params := make([]*graph.Node, len(values))
	for i, v := range values {
		params[i] = graph.Parameter(g, fmt.Sprintf("s%d", i), v.Shape())
	}
	return params
}

// placeholder is a node that stands for a parameter while a function is traced. Nothing computes it, and no gradient
// goes behind it.
func placeholder(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return graph.OptimizationBarrier(graph.StopGradient(graph.Zeros(g, shape)))
}

// A tracer is a backend that knows what a body makes while it is traced, and refuses it outside.
type tracer interface {
	BeginTrace(whole bool) // the parameters come; whole: all but constants and parameters is of the body
	TraceBody()            // the body comes
	EndTrace()
}

// tracing traces a body on parameters of some shapes, and gives the number of its first node. Call end when what the
// body made was read.
func tracing(g *graph.Graph, whole bool, lists ...[]shapes.Shape) (params [][]*graph.Node, first int, end func()) {
	t, ok := g.Backend().(tracer)
	if ok {
		t.BeginTrace(whole)
	}
	first = len(g.Nodes())
	for _, list := range lists {
		in := make([]*graph.Node, len(list))
		for i, shape := range list {
			in[i] = placeholder(g, shape)
		}
		params = append(params, in)
	}
	if !ok {
		return params, first, func() {}
	}
	t.TraceBody()
	return params, first, t.EndTrace
}

func shapesOf(nodes []*graph.Node) []shapes.Shape {
	list := make([]shapes.Shape, len(nodes))
	for i, n := range nodes {
		list[i] = n.Shape()
	}
	return list
}

// cut finds the part of the nodes made from number first on that lies between params and outputs. A node that depends
// on no parameter is the same each time and stays outside.
func cut(g *graph.Graph, first int, params, outputs []*graph.Node) *traced {
	return cutOf(g.Nodes()[first:], false, params, outputs)
}

// cutOf is cut of some nodes. whole is for a body that may not be run at all: all of it but constants is inside.
func cutOf(nodes []*graph.Node, whole bool, params, outputs []*graph.Node) *traced {
	t := &traced{params: params, outputs: outputs}
	varies := map[*graph.Node]bool{}
	for _, p := range params {
		varies[p] = true
	}
	for _, n := range nodes {
		inside := whole && n.Type() != graph.NodeTypeParameter && !constant(n)
		if !varies[n] && (inside || slices.ContainsFunc(takenBy(n), func(in *graph.Node) bool { return varies[in] })) {
			varies[n] = true
			t.nodes = append(t.nodes, n)
		}
	}
	needed := map[*graph.Node]bool{}
	for _, o := range outputs {
		needed[o] = true
	}
	for _, n := range slices.Backward(t.nodes) {
		if needed[n] {
			for _, in := range takenBy(n) {
				needed[in] = true
			}
		}
	}
	// All outputs of a node of several stay, also those that only its gradient takes.
	t.nodes = slices.DeleteFunc(t.nodes, func(n *graph.Node) bool {
		return !needed[n] && (n.Type() != graph.NodeTypeSplitNode || !needed[n.Inputs()[0]])
	})
	known := map[*graph.Node]bool{}
	capture := func(n *graph.Node) {
		if !varies[n] && !known[n] && !constant(n) {
			t.captured = append(t.captured, n)
		}
		known[n] = true
	}
	for _, n := range t.nodes {
		for _, in := range takenBy(n) {
			capture(in)
		}
	}
	for _, o := range outputs {
		capture(o)
	}
	return t
}

// at writes the function again, with other nodes for its parameters and what else it takes. It gives what the nodes are
// now. Where the value of a node is known, it is taken; its gradient goes the way of the node all the same.
func (t *traced) at(params, captured []*graph.Node, known map[*graph.Node]*graph.Node) rewritten {
	if len(params) != len(t.params) || len(captured) != len(t.captured) {
		panic(fmt.Errorf("autodiff: a function of %d parameters and %d captured values was given %d and %d",
			len(t.params), len(t.captured), len(params), len(captured)))
	}
	now := make(rewritten, len(t.nodes)+len(params)+len(captured))
	for i, p := range t.params {
		now[p] = params[i]
	}
	for i, c := range t.captured {
		now[c] = captured[i]
	}
	for _, n := range t.nodes {
		now[n] = now.clone(n)
		if value := known[n]; value != nil {
			again := now[n]
			now[n] = instead(value, again)
			noteInstead(again, now[n])
		}
	}
	return now
}

type alwaysKey struct{}

// always is a constant of the graph that is always true; it stands for nothing but instead.
func always(g *graph.Graph) *graph.Node {
	if n, ok := g.State(alwaysKey{}).(*graph.Node); ok {
		return n
	}
	n := graph.Const(g, true)
	g.AttachState(alwaysKey{}, n)
	return n
}

// instead is a value that a node has, in the place of the node. XLA leaves the node out; the gradient goes to it and
// not to the value.
func instead(value, node *graph.Node) *graph.Node {
	return graph.Where(always(node.Graph()), value, node)
}

type insteadKey struct{}

// noteInstead remembers what stands for a node.
func noteInstead(node, is *graph.Node) {
	known, ok := node.Graph().State(insteadKey{}).(map[*graph.Node]*graph.Node)
	if !ok {
		known = map[*graph.Node]*graph.Node{}
		node.Graph().AttachState(insteadKey{}, known)
	}
	known[node] = is
}

// ofResult is the rule of functions of single elements whose gradient takes their result: the saved one, if there is
// one.
func ofResult(node, v *graph.Node) []*graph.Node {
	result := node
	if known, ok := node.Graph().State(insteadKey{}).(map[*graph.Node]*graph.Node); ok && known[node] != nil {
		result = known[node]
	}
	return stock[node.Type()](result, []*graph.Node{v}, shapes.Shape{})
}

// chosen is the rule of Where, which knows instead.
func chosen(node, v *graph.Node) []*graph.Node {
	if t, ok := node.Graph().State(alwaysKey{}).(*graph.Node); ok && node.Inputs()[0] == t {
		return []*graph.Node{nil, nil, v}
	}
	return stock[graph.NodeTypeWhere](node, []*graph.Node{v}, shapes.Shape{})
}

// rewritten is what stands for the nodes of a traced function where it was rewritten again.
type rewritten map[*graph.Node]*graph.Node

func (w rewritten) of(n *graph.Node) *graph.Node {
	if m, ok := w[n]; ok {
		return m
	}
	return n
}

func (w rewritten) all(nodes []*graph.Node) []*graph.Node {
	list := make([]*graph.Node, len(nodes))
	for i, n := range nodes {
		list[i] = w.of(n)
	}
	return list
}

// factorOf lists the nodes that take a parameter, if all of them are products of it and something else that is no
// output of the function.
func (t *traced) factorOf(param *graph.Node) []*graph.Node {
	if slices.Contains(t.outputs, param) {
		return nil
	}
	var products []*graph.Node
	for _, n := range t.nodes {
		in := takenBy(n)
		switch uses := len(in) > 0 && slices.Contains(in, param); {
		case !uses:
		case n.Type() != graph.NodeTypeDotGeneral || in[0] == in[1]:
			return nil
		default:
			products = append(products, n)
		}
	}
	return products
}

// constant tells whether a node depends on nothing but constants. What stands for a parameter is none.
func constant(n *graph.Node) bool {
	seen := map[*graph.Node]bool{}
	var of func(n *graph.Node) bool
	of = func(n *graph.Node) bool {
		if seen[n] {
			return true // or it would have ended
		}
		seen[n] = true
		switch {
		case n.Type() == graph.NodeTypeParameter, n.Type() == graph.NodeTypeOptimizationBarrier, hidden(n):
			return false
		}
		for _, in := range takenBy(n) {
			if !of(in) {
				return false
			}
		}
		return true
	}
	return of(n)
}
