package autodiff

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// branch is a choice among functions: in the graph a While whose inputs are the function's number and all captures,
// which gradients thus reach.
type branch struct {
	bodies []*traced
	taken  []*graph.Node         // captured by the bodies
	out    int                   // number of results; the saved nodes follow them
	saved  []map[*graph.Node]int // by body: the index of the result with a node's value
}

// choosing is implemented by closure parameters of backends with a case operation.
type choosing interface {
	// Branch marks the closure: a While with it as body is the case of the closures of its Ifs.
	Branch()
}

type branchesKey struct{}

func branchOf(node *graph.Node) *branch {
	if node.Type() != graph.NodeTypeWhile {
		return nil
	}
	all, _ := node.Graph().State(branchesKey{}).(map[*graph.Function]*branch)
	return all[attributesOf(node).function("body")]
}

func (b *branch) note(g *graph.Graph, body *graph.Function) {
	all, ok := g.State(branchesKey{}).(map[*graph.Function]*branch)
	if !ok {
		all = map[*graph.Function]*branch{}
		g.AttachState(branchesKey{}, all)
	}
	all[body] = b
}

// Branch traces the functions and runs functions[number]; number is an int32. finish receives all outputs and returns
// them with equal numbers and shapes for each function.
func Branch(number *graph.Node, functions []func() []*graph.Node, finish func(outputs [][]*graph.Node) [][]*graph.Node) []*graph.Node {
	g := number.Graph()
	ranges, outputs := make([][2]int, len(functions)), make([][]*graph.Node, len(functions))
	for i, f := range functions {
		_, first, end := tracing(g, true)
		outputs[i] = f()
		ranges[i] = [2]int{first, len(g.Nodes())}
		end()
	}
	if finish != nil {
		outputs = finish(outputs)
	}
	b := &branch{out: len(outputs[0])}
	var slots []shapes.Shape
	for i, out := range outputs {
		t := cutOf(g.Nodes()[ranges[i][0]:ranges[i][1]], true, nil, out)
		for _, n := range t.captured {
			if !slices.Contains(b.taken, n) {
				b.taken = append(b.taken, n)
			}
		}
		saved, used := map[*graph.Node]int{}, map[int]bool{}
		for _, n := range t.toSave() {
			at := -1
			for k, s := range slots {
				if !used[k] && s.Equal(n.Shape()) {
					at = k
					break
				}
			}
			if at < 0 {
				at, slots = len(slots), append(slots, n.Shape())
			}
			used[at], saved[n] = true, b.out+at
		}
		b.bodies, b.saved = append(b.bodies, t), append(b.saved, saved)
	}
	empty := make([]*graph.Node, len(slots))
	for k, s := range slots {
		empty[k] = graph.Zeros(g, s)
	}
	inputs := append([]*graph.Node{number}, b.taken...)
	yes := graph.Const(g, true)
	one := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parametersLike(g, inputs)
		graph.InternalBackendOutputs(p[0])[0].(choosing).Branch()
		var results []*graph.Node
		for i, t := range b.bodies {
			body := graph.NewClosure(g, func(*graph.Graph) []*graph.Node {
				now := t.at(nil, b.inputsOf(i, p[1:]), nil)
				list := slices.Concat(now.all(t.outputs), empty)
				for n, at := range b.saved[i] {
					list[at] = now.of(n)
				}
				return list
			})
			results = graph.If(yes, body, body)
		}
		return results
	})
	b.note(g, one)
	results := graph.While(one, one, inputs...) // the backend makes this a case of its closures
	noteWritten(results[0])
	return results[:b.out]
}

func (b *branch) inputsOf(i int, values []*graph.Node) []*graph.Node {
	list := make([]*graph.Node, len(b.bodies[i].captured))
	for k, n := range b.bodies[i].captured {
		list[k] = values[slices.Index(b.taken, n)]
	}
	return list
}

// It recomputes all but the saved nodes.
func (b *branch) gradient(node *graph.Node, vs []*graph.Node) []*graph.Node {
	inputs, results := node.Inputs(), []*graph.Node{node}
	if node.NumOutputs() > 1 {
		results = splits(node)
	}
	if known, ok := node.Graph().State(insteadKey{}).(map[*graph.Node]*graph.Node); ok {
		for i, n := range results {
			if known[n] != nil {
				results[i] = known[n]
			}
		}
	}
	values := inputs[1:]
	var wrt, ofOut []int
	for i, n := range values {
		if differentiable(n.DType()) && !constant(n) {
			wrt = append(wrt, i)
		}
	}
	for i, v := range vs[:b.out] {
		if v != nil && differentiable(v.DType()) && !isZero(v) {
			ofOut = append(ofOut, i)
		}
	}
	gradients := make([]*graph.Node, len(inputs))
	if len(wrt) == 0 || len(ofOut) == 0 {
		return gradients
	}
	bodies := make([]func() []*graph.Node, len(b.bodies))
	for i, t := range b.bodies {
		bodies[i] = func() []*graph.Node {
			in := make([]*graph.Node, len(values))
			for k, v := range values {
				in[k] = itself(v) // a gradient by one value must not include that by another one computed from it
			}
			known := map[*graph.Node]*graph.Node{}
			for n, at := range b.saved[i] {
				known[n] = results[at]
			}
			for k, n := range t.outputs {
				if slices.Contains(t.nodes, n) && isCostly(n) {
					known[n] = results[k]
				}
			}
			outputs := t.at(nil, b.inputsOf(i, in), known).all(t.outputs)
			var of, adjoints, by []*graph.Node
			for _, k := range ofOut {
				of, adjoints = append(of, outputs[k]), append(adjoints, vs[k])
			}
			for _, k := range wrt {
				by = append(by, in[k])
			}
			return Gradient(Weighted(of, adjoints), by...)
		}
	}
	for k, d := range Branch(inputs[0], bodies, nil) {
		gradients[1+wrt[k]] = d
	}
	return gradients
}

// GoMLX's Identity has no gradient.
func itself(n *graph.Node) *graph.Node {
	return graph.IdentityWithCustomGradient(n, func(_, v *graph.Node) *graph.Node { return v })
}
