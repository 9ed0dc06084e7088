package autodiff

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Loop is a loop of a known greatest length, whose gradient is known: a scan.
type Loop struct {
	// Length is how often the body runs, and how long the first axis of the places and of the outputs is.
	Length int
	// Times, if it is given, is a scalar of int32, 0 to Length: how often the body runs in truth. Outputs of the others
	// are 0.
	Times *graph.Node
	// Reverse runs from the last place to the first.
	Reverse bool
	// Remat has the gradient compute again all that the body computes, from the carried values alone.
	Remat bool
}

// Body makes one turn: it gives the carried values of the next one, and what is stacked. It is called once, to be
// traced.
type Body func(carry, at, fixed []*graph.Node) (next, out []*graph.Node)

// loop is a Loop with its body. Its state in the graph's While is the counter, Times if it is given, the carried
// values, the places, the captured values, and the stacks: the outputs, the carried values before each turn, and the
// saved nodes. The gradient takes the last two.
type loop struct {
	Loop
	body                      *traced
	carry, places, fixed, out int // how many
	saved                     []*graph.Node
}

// costly are the operations whose results are saved for the gradient. Those of single elements are not: to compute one
// again takes about as long as to read it, and memory besides.
var costly = map[graph.NodeType]bool{
	graph.NodeTypeDotGeneral: true, graph.NodeTypeConvGeneral: true, graph.NodeTypeWhile: true, graph.NodeTypeSort: true,
	graph.NodeTypeRNGBitGenerator: true,
}

// toSave are the nodes of a body that are costly, with one output each.
func (t *traced) toSave() (list []*graph.Node) {
	for _, n := range t.nodes {
		of := n
		if n.Type() == graph.NodeTypeSplitNode {
			of = n.Inputs()[0]
		}
		if costly[of.Type()] && n.NumOutputs() == 1 && !slices.Contains(t.outputs, n) {
			list = append(list, n)
		}
	}
	return list
}

type loopsKey struct{}

// loopOf finds what a While of Run was made of.
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

// Run traces the body and writes the loop: places are stacked on their first axis, of which a turn gets one, and so are
// outs. fixed are the same in each turn, as is any other node of the graph that body uses. What the body changes beside
// its results is asked of changed when it was traced: values that it has taken, and what they are now. The loop carries
// them, and last ends with them.
func (l Loop) Run(g *graph.Graph, carry, places, fixed []*graph.Node, body Body, changed func() (before, after []*graph.Node)) (last, outs []*graph.Node) {
	whole := l.Times != nil
	at := shapesOf(places)
	for i, stack := range at {
		at[i] = placeOf(stack)
	}
	params, first, end := tracing(g, whole, shapesOf(carry), at, shapesOf(fixed))
	carryIn, placesIn, fixedIn := params[0], params[1], params[2]
	next, out := body(carryIn, placesIn, fixedIn)
	if err := sameShapes("the carried values", carry, next); err != nil {
		panic(err)
	}
	if changed != nil {
		before, after := changed()
		carry, carryIn, next = concat(carry, before), concat(carryIn, before), concat(next, after)
	}
	of := cut(g, first, whole, concat(carryIn, placesIn, fixedIn), concat(next, out, carryIn))
	end()
	fixed = concat(fixed, of.captured)
	made := &loop{Loop: l, body: of, carry: len(carry), places: len(places), fixed: len(fixed), out: len(out)}
	if !l.Remat {
		made.saved = of.toSave()
		of.outputs = concat(of.outputs, made.saved)
	}
	return made.write(g, carry, places, fixed)
}

func sameShapes(what string, want, got []*graph.Node) error {
	if len(want) != len(got) {
		return fmt.Errorf("%s: expected %d as at the start, got %d", what, len(want), len(got))
	}
	for i := range want {
		if got[i] == nil || !want[i].Shape().Equal(got[i].Shape()) {
			return fmt.Errorf("%s: number %d: expected %s as at the start, got %s", what, i, want[i].Shape(), got[i].Shape())
		}
	}
	return nil
}

func concat(lists ...[]*graph.Node) (all []*graph.Node) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// placeOf is the shape of what stands at one place of a stack.
func placeOf(stack shapes.Shape) shapes.Shape {
	return shapes.Make(stack.DType, stack.Dimensions[1:]...)
}

func stackOf(length int, place shapes.Shape) shapes.Shape {
	return shapes.Make(place.DType, append([]int{length}, place.Dimensions...)...)
}

// write writes the While.
func (l *loop) write(g *graph.Graph, carry, places, fixed []*graph.Node) (last, outs []*graph.Node) {
	// GoMLX shares scalars among functions: made here, they are main's.
	zero, one, length := graph.Const(g, int32(0)), graph.Const(g, int32(1)), graph.Const(g, int32(l.Length))
	state := []*graph.Node{zero}
	if l.Times != nil {
		state = append(state, l.Times)
	}
	at := len(state)
	state = concat(state, carry, places, fixed)
	for _, o := range l.body.outputs[l.carry:] {
		state = append(state, graph.Zeros(g, stackOf(l.Length, o.Shape())))
	}
	parameters := func(g *graph.Graph) []*graph.Node {
		p := make([]*graph.Node, len(state))
		for i, s := range state {
			p[i] = graph.Parameter(g, fmt.Sprintf("s%d", i), s.Shape())
		}
		return p
	}
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parameters(g)
		if l.Times != nil {
			length = p[1]
		}
		return []*graph.Node{graph.LessThan(p[0], length)}
	})
	body := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parameters(g)
		place := p[0]
		if l.Reverse {
			end := length
			if l.Times != nil {
				end = p[1]
			}
			place = graph.Sub(graph.Sub(end, one), place)
		}
		next := append([]*graph.Node{graph.Add(p[0], one)}, p[1:]...)
		rest := p[at:]
		params := concat(rest[:l.carry])
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
	stacks := at + l.carry + l.places + l.fixed
	return results[at : at+l.carry], results[stacks : stacks+l.out]
}

// at writes the body for carried values and places, and what is fixed.
func (l *loop) at(turn, fixed []*graph.Node, known map[*graph.Node]*graph.Node) rewritten {
	given := len(fixed) - len(l.body.captured)
	return l.body.at(concat(turn, fixed[:given]), fixed[given:], known)
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

// differentiable tells whether values of a type have a gradient.
func differentiable(t dtypes.DType) bool { return t.IsFloat() || t.IsComplex() }

// whileGradient is the rule of a While that Run wrote: a loop in the other direction, over the carried values that the
// first one kept. Each turn computes the body again and differentiates it.
func whileGradient(node *graph.Node, vs []*graph.Node) []*graph.Node {
	l := loopOf(node)
	if l == nil {
		panic(errors.New("autodiff: gradient: a While has none"))
	}
	g, inputs, results := node.Graph(), node.Inputs(), splits(node)
	b := backward{loop: l}
	back := Loop{Length: l.Length, Reverse: !l.Reverse, Remat: l.Remat}
	at := 1
	if l.Times != nil {
		at, back.Times = 2, inputs[1]
	}
	places := inputs[at+l.carry : at+l.carry+l.places]
	fixed := inputs[at+l.carry+l.places : at+l.carry+l.places+l.fixed]
	stacks := at + l.carry + l.places + l.fixed
	kept, saved := results[stacks+l.out:stacks+l.out+l.carry], results[stacks+l.out+l.carry:]
	turns := concat(kept, places) // the parameters of each turn, stacked

	b.ofCarry, b.ofPlaces = floats(kept), floats(places)
	var carry, fed []*graph.Node
	for _, i := range b.ofCarry {
		carry = append(carry, vs[at+i])
	}
	for _, i := range floats(fixed) {
		if products := l.body.factorOf(l.fixedParam(i)); len(products) > 0 && l.Times == nil && !l.Remat {
			for _, n := range products {
				b.products = append(b.products, product{node: n, fixed: i})
			}
			continue
		}
		b.ofFixed = append(b.ofFixed, i)
		carry = append(carry, graph.Zeros(g, fixed[i].Shape()))
	}
	for i, o := range results[stacks:] {
		if v := vs[stacks+i]; differentiable(o.DType()) && !isZero(v) {
			b.ofOut, fed = append(b.ofOut, i), append(fed, v)
		}
	}
	last, outs := back.Run(g, carry, concat(fed, turns, saved), fixed, b.turn, nil)

	gradients := make([]*graph.Node, len(inputs))
	add := func(i int, d *graph.Node) {
		if i += at + l.carry + l.places; gradients[i] != nil {
			d = graph.Add(gradients[i], d)
		}
		gradients[i] = d
	}
	for k, i := range b.ofCarry {
		gradients[at+i] = last[k]
	}
	for k, i := range b.ofPlaces {
		gradients[at+l.carry+i] = outs[k]
	}
	for k, i := range b.ofFixed {
		add(i, last[len(b.ofCarry)+k])
	}
	outs = outs[len(b.ofPlaces):]
	for _, p := range b.products {
		v := outs[0]
		outs = outs[1:]
		var other *graph.Node
		if i := slices.Index(l.body.params[:l.carry+l.places], p.other(l)); i >= 0 {
			other = turns[i]
		} else {
			other, outs = outs[0], outs[1:]
		}
		add(p.fixed, p.gradient(l, fixed[p.fixed], other, v))
	}
	return gradients
}

// backward is the gradient of a loop: the numbers of the values that have an adjoint, of their kind.
type backward struct {
	*loop
	ofCarry, ofPlaces, ofFixed []int
	ofOut                      []int // of the outputs behind the carried values, those that an adjoint comes for
	products                   []product
}

// product is a DotGeneral of the body with a fixed value that is used by such alone, as weights are. Its gradient by
// that value is one product behind the loop, over all places at once, where a sum in the loop would take one for each.
type product struct {
	node  *graph.Node
	fixed int
}

// turn goes one turn back. It carries the adjoints of the carried values, and the sums of those of fixed ones; it is
// fed the adjoints of outputs, and what the turn was given; it gives the adjoints of the places, and what the products
// need.
func (b *backward) turn(carry, at, fixed []*graph.Node) (next, out []*graph.Node) {
	ofOut, params := at[:len(b.ofOut)], at[len(b.ofOut):]
	params, saved := params[:b.carry+b.places], params[b.carry+b.places:]
	known := map[*graph.Node]*graph.Node{}
	for i, n := range b.saved {
		known[n] = saved[i]
	}
	now := b.at(params, fixed, known)
	results := now.all(b.body.outputs)
	var wrt, values []*graph.Node
	for _, i := range b.ofCarry {
		wrt, values = append(wrt, params[i]), append(values, results[i])
	}
	for _, i := range b.ofOut {
		values = append(values, results[b.carry+i])
	}
	loss := Weighted(values, concat(carry[:len(b.ofCarry)], ofOut))
	for _, i := range b.ofPlaces {
		wrt = append(wrt, params[b.carry+i])
	}
	for _, i := range b.ofFixed {
		wrt = append(wrt, fixed[i])
	}
	for _, p := range b.products {
		wrt = append(wrt, now.of(p.node))
	}
	gradients := make([]*graph.Node, len(wrt))
	if loss == nil { // nothing that it comes from has an adjoint
		for i, n := range wrt {
			gradients[i] = graph.Zeros(n.Graph(), n.Shape())
		}
	} else {
		gradients = Gradient(loss, wrt...)
	}
	next, gradients = concat(gradients[:len(b.ofCarry)]), gradients[len(b.ofCarry):]
	out, gradients = concat(gradients[:len(b.ofPlaces)]), gradients[len(b.ofPlaces):]
	for k := range b.ofFixed {
		next = append(next, graph.Add(carry[len(next)], gradients[k]))
	}
	for k, p := range b.products {
		out = append(out, gradients[len(b.ofFixed)+k])
		if other := p.other(b.loop); !slices.Contains(b.body.params[:b.carry+b.places], other) {
			out = append(out, now.of(other))
		}
	}
	return next, out
}

// fixedParam is what stands for a fixed value in the body.
func (l *loop) fixedParam(i int) *graph.Node {
	if given := l.fixed - len(l.body.captured); i >= given {
		return l.body.captured[i-given]
	}
	return l.body.params[l.carry+l.places+i]
}

func (p product) other(l *loop) *graph.Node {
	in := p.node.Inputs()
	if in[0] == l.fixedParam(p.fixed) {
		return in[1]
	}
	return in[0]
}

// gradient is that by the fixed value, of the stacks of the other operand and of the adjoints.
func (p product) gradient(l *loop, fixed, other, v *graph.Node) *graph.Node {
	a := attributesOf(p.node)
	in := p.node.Inputs()
	lhs := newOperand(in[0], a.ints("lhsBatchAxes"), a.ints("lhsContractingAxes"))
	rhs := newOperand(in[1], a.ints("rhsBatchAxes"), a.ints("rhsContractingAxes"))
	sums := dtypes.DType(a.sub("config").field("AccumulatorDType", reflect.Int32).Int())
	batch := axesFrom(1, len(lhs.batch))
	fromLhs := axesFrom(1+len(batch), len(lhs.free))
	fromRhs := axesFrom(1+len(batch)+len(fromLhs), len(rhs.free))
	of, partner, ofFixed, ofPartner := lhs, rhs, fromLhs, fromRhs
	if in[1] == l.fixedParam(p.fixed) {
		of, partner, ofFixed, ofPartner = rhs, lhs, fromRhs, fromLhs
	}
	of.node = fixed
	// The places are one more axis that both have and the gradient sums over.
	partner = operand{other, shifted(partner.batch), shifted(partner.contracting), append([]int{0}, shifted(partner.free)...)}
	return dotGradient(operand{v, batch, append([]int{0}, ofPartner...), ofFixed}, partner, of, sums)
}

func shifted(axes []int) []int {
	list := make([]int, len(axes))
	for i, axis := range axes {
		list[i] = axis + 1
	}
	return list
}

// floats are the numbers of the nodes that have a gradient.
func floats(nodes []*graph.Node) (list []int) {
	for i, n := range nodes {
		if differentiable(n.DType()) {
			list = append(list, i)
		}
	}
	return list
}

// splits are the outputs of a node of several, by their numbers.
func splits(node *graph.Node) []*graph.Node {
	outputs := make([]*graph.Node, node.NumOutputs())
	for _, n := range nodesSince(node.Graph(), int(node.Id())) {
		if n.Type() == graph.NodeTypeSplitNode && n.Inputs()[0] == node {
			outputs[attributesOf(n).int("index")] = n
		}
	}
	return outputs
}

// isZero tells whether a node is zeros as GoMLX makes them for an output that has no adjoint.
func isZero(n *graph.Node) bool {
	if n.Type() == graph.NodeTypeBroadcastInDim {
		n = n.Inputs()[0]
	}
	return n == graph.ScalarZero(n.Graph(), n.DType())
}
