package autodiff

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// traced is the part of a graph between parameters and outputs, like a loop's body, to be rebuilt with other nodes.
type traced struct {
	params, outputs []*graph.Node
	nodes           []*graph.Node
	captured        []*graph.Node // other nodes that they use, without constants
}

func parametersLike(g *graph.Graph, values []*graph.Node) []*graph.Node {
	params := make([]*graph.Node, len(values))
	for i, v := range values {
		params[i] = graph.Parameter(g, fmt.Sprintf("s%d", i), v.Shape())
	}
	return params
}

// Gradients end at it.
func placeholder(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return graph.OptimizationBarrier(graph.StopGradient(graph.Zeros(g, shape)))
}

// tracer is a backend that tracks a body's nodes, and refuses them outside.
type tracer interface {
	BeginTrace(whole bool) // before the parameters; whole: all but constants and parameters is in the body
	TraceBody()            // before the body
	EndTrace()
}

// tracing traces a body with parameters of these shapes, whose first node has index first. Call end after reading the
// body's nodes.
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

func cut(g *graph.Graph, first int, params, outputs []*graph.Node) *traced {
	return cutOf(g.Nodes()[first:], false, params, outputs)
}

// whole is for a body that may not run at all: only constants stay outside.
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
	// A multi-output node keeps all outputs: its gradient may use them.
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

// Known values replace their nodes, but gradients pass through the nodes.
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
			now[n] = Instead(value, again)
			noteInstead(again, now[n])
		}
	}
	return now
}

type alwaysKey struct{}

func always(g *graph.Graph) *graph.Node {
	if n, ok := g.State(alwaysKey{}).(*graph.Node); ok {
		return n
	}
	n := graph.Const(g, true)
	g.AttachState(alwaysKey{}, n)
	return n
}

// Instead returns value, with the gradient of node. XLA drops the node.
func Instead(value, node *graph.Node) *graph.Node {
	return graph.Where(always(node.Graph()), value, node)
}

type insteadKey struct{}

func noteInstead(node, is *graph.Node) {
	known, ok := node.Graph().State(insteadKey{}).(map[*graph.Node]*graph.Node)
	if !ok {
		known = map[*graph.Node]*graph.Node{}
		node.Graph().AttachState(insteadKey{}, known)
	}
	known[node] = is
}

// The result is the saved one, if any.
func ofResult(node, v *graph.Node) []*graph.Node {
	result := node
	if known, ok := node.Graph().State(insteadKey{}).(map[*graph.Node]*graph.Node); ok && known[node] != nil {
		result = known[node]
	}
	return stock[node.Type()](result, []*graph.Node{v}, shapes.Shape{})
}

func chosen(node, v *graph.Node) []*graph.Node {
	if t, ok := node.Graph().State(alwaysKey{}).(*graph.Node); ok && node.Inputs()[0] == t {
		return []*graph.Node{nil, nil, v}
	}
	return stock[graph.NodeTypeWhere](node, []*graph.Node{v}, shapes.Shape{})
}

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

// The nodes that use a parameter, if each is a product with it and not an output.
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

type constantsKey struct{}

// Placeholders are not constants. The graph keeps the answers: each branch of nested ones asks of the same nodes.
func constant(n *graph.Node) bool {
	known, ok := n.Graph().State(constantsKey{}).(map[*graph.Node]bool)
	if !ok {
		known = map[*graph.Node]bool{}
		n.Graph().AttachState(constantsKey{}, known)
	}
	var of func(n *graph.Node) bool
	of = func(n *graph.Node) bool {
		is, ok := known[n]
		if !ok {
			is = n.Type() != graph.NodeTypeParameter && n.Type() != graph.NodeTypeOptimizationBarrier && !hidden(n) &&
				!slices.ContainsFunc(takenBy(n), func(in *graph.Node) bool { return !of(in) })
			known[n] = is
		}
		return is
	}
	return of(n)
}
