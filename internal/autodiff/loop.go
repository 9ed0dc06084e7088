package autodiff

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Loop is a scan: a loop of known maximum length, with a gradient.
type Loop struct {
	Length  int
	Reverse bool
	// Remat makes the gradient recompute everything from the carried values.
	Remat bool
	// Over are stacks that nothing else uses later, if any, for outputs of their shapes: XLA writes those in their place.
	Over []*graph.Node
}

// Body builds one iteration, once. It returns the next carried values, in their initial shapes, and the outputs to
// stack.
type Body func(carry, at, fixed []*graph.Node) (next, out []*graph.Node)

// The state of the While: the counter, the carried values, the places, the captures, and the stacks (the outputs and,
// for the gradient, each iteration's carried values and the saved nodes).
type loop struct {
	Loop
	body                      *traced
	carry, places, fixed, out int
	saved                     []*graph.Node
}

// Results of costly operations are saved. Recomputing others costs about as much as reading.
var costly = map[graph.NodeType]bool{
	graph.NodeTypeDotGeneral: true, graph.NodeTypeConvGeneral: true, graph.NodeTypeWhile: true, graph.NodeTypeSort: true,
	graph.NodeTypeRNGBitGenerator: true, graph.NodeTypeExp: true, graph.NodeTypeTanh: true, graph.NodeTypeLogistic: true,
}

func (t *traced) toSave() (list []*graph.Node) {
	for _, n := range t.nodes {
		if isCostly(n) && !slices.Contains(t.outputs, n) {
			list = append(list, n)
		}
	}
	return list
}

func isCostly(n *graph.Node) bool {
	of := n
	if n.Type() == graph.NodeTypeSplitNode {
		of = n.Inputs()[0]
	}
	return costly[of.Type()] && n.NumOutputs() == 1
}

type loopsKey struct{}

func loopOf(node *graph.Node) *loop {
	if node.Type() != graph.NodeTypeWhile {
		return nil
	}
	loops, _ := node.Graph().State(loopsKey{}).(map[*graph.Function]*loop)
	return loops[attributesOf(node).function("body")]
}

func (l *loop) note(g *graph.Graph, body *graph.Function) {
	loops, ok := g.State(loopsKey{}).(map[*graph.Function]*loop)
	if !ok {
		loops = map[*graph.Function]*loop{}
		g.AttachState(loopsKey{}, loops)
	}
	loops[body] = l
}

// Run traces the body and builds the loop. places and outs are stacked on their first axis; fixed values and other
// captured nodes are equal in all iterations. changed is called after tracing and returns other values that the body
// changed, before and after; the loop carries them, and last ends with them.
func (l Loop) Run(g *graph.Graph, carry, places, fixed []*graph.Node, body Body, changed func() (before, after []*graph.Node)) (last, outs []*graph.Node) {
	at := shapesOf(places)
	for i, stack := range at {
		at[i] = placeOf(stack)
	}
	params, first, end := tracing(g, false, shapesOf(carry), at, shapesOf(fixed))
	carryIn, placesIn, fixedIn := params[0], params[1], params[2]
	next, given := body(carryIn, placesIn, fixedIn)
	var out []*graph.Node // each once: the gradient of a product often needs a value of places too
	for _, o := range given {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	if changed != nil {
		before, after := changed()
		carry, carryIn, next = slices.Concat(carry, before), slices.Concat(carryIn, before), slices.Concat(next, after)
	}
	of := cut(g, first, slices.Concat(carryIn, placesIn, fixedIn), slices.Concat(next, out, carryIn))
	end()
	fixed = slices.Concat(fixed, of.captured)
	made := &loop{Loop: l, body: of, carry: len(carry), places: len(places), fixed: len(fixed), out: len(out)}
	if !l.Remat {
		made.saved = of.toSave()
		of.outputs = slices.Concat(of.outputs, made.saved)
	}
	over := make([]*graph.Node, len(of.outputs)-len(carry))
	for i, stack := range l.Over {
		over[slices.Index(out, given[i])] = stack
	}
	last, stacks := made.write(g, carry, places, fixed, over)
	for _, o := range given {
		outs = append(outs, stacks[slices.Index(out, o)])
	}
	return last, outs
}

func placeOf(stack shapes.Shape) shapes.Shape {
	return shapes.Make(stack.DType, stack.Dimensions[1:]...)
}

func stackOf(length int, place shapes.Shape) shapes.Shape {
	return shapes.Make(place.DType, append([]int{length}, place.Dimensions...)...)
}

func (l *loop) write(g *graph.Graph, carry, places, fixed, over []*graph.Node) (last, outs []*graph.Node) {
	// GoMLX shares scalars among functions; created here, they belong to main.
	zero, one, length := graph.Const(g, int32(0)), graph.Const(g, int32(1)), graph.Const(g, int32(l.Length))
	state := []*graph.Node{zero}
	at := len(state)
	state = slices.Concat(state, carry, places, fixed)
	for i, o := range l.body.outputs[l.carry:] {
		if over[i] == nil {
			over[i] = graph.Zeros(g, stackOf(l.Length, o.Shape()))
		}
		state = append(state, over[i])
	}
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parametersLike(g, state)
		return []*graph.Node{graph.LessThan(p[0], length)}
	})
	body := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parametersLike(g, state)
		place := p[0]
		if l.Reverse {
			place = graph.Sub(graph.Sub(length, one), place)
		}
		next := append([]*graph.Node{graph.Add(p[0], one)}, p[1:]...)
		rest := p[at:]
		params := slices.Concat(rest[:l.carry])
		for _, stack := range rest[l.carry : l.carry+l.places] {
			params = append(params, slicePlace(stack, place, zero))
		}
		results := l.at(params, rest[l.carry+l.places:l.carry+l.places+l.fixed], nil).all(l.body.outputs)
		copy(next[at:], results[:l.carry])
		stacks := at + l.carry + l.places + l.fixed
		for i, o := range results[l.carry:] {
			next[stacks+i] = putPlace(next[stacks+i], o, place, zero)
		}
		return next
	})
	l.note(g, body)
	results := graph.While(cond, body, state...)
	noteWritten(results[0])
	stacks := at + l.carry + l.places + l.fixed
	return results[at : at+l.carry], results[stacks : stacks+l.out]
}

func (l *loop) at(turn, fixed []*graph.Node, known map[*graph.Node]*graph.Node) rewritten {
	given := len(fixed) - len(l.body.captured)
	return l.body.at(slices.Concat(turn, fixed[:given]), fixed[given:], known)
}

func starts(rank int, place, zero *graph.Node) []*graph.Node {
	list := make([]*graph.Node, rank)
	for i := range list {
		list[i] = zero
	}
	list[0] = place
	return list
}

func slicePlace(stack, place, zero *graph.Node) *graph.Node {
	sizes := append([]int{1}, stack.Shape().Dimensions[1:]...)
	return graph.Reshape(graph.DynamicSlice(stack, starts(stack.Rank(), place, zero), sizes), sizes[1:]...)
}

func putPlace(stack, value, place, zero *graph.Node) *graph.Node {
	one := graph.Reshape(value, append([]int{1}, value.Shape().Dimensions...)...)
	return graph.DynamicUpdateSlice(stack, one, starts(stack.Rank(), place, zero))
}
