package autodiff

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

func differentiable(t dtypes.DType) bool { return t.IsFloat() || t.IsComplex() }

// A reversed loop over the saved carried values recomputes the body and differentiates it.
func whileGradient(node *graph.Node, vs []*graph.Node) []*graph.Node {
	if b := branchOf(node); b != nil {
		return b.gradient(node, vs)
	}
	l := loopOf(node)
	if l == nil {
		panic(errClosure)
	}
	g, inputs, results := node.Graph(), node.Inputs(), splits(node)
	b := backward{loop: l}
	back := Loop{Length: l.Length, Reverse: !l.Reverse, Remat: l.Remat}
	at := 1
	places := inputs[at+l.carry : at+l.carry+l.places]
	fixed := inputs[at+l.carry+l.places : at+l.carry+l.places+l.fixed]
	stacks := at + l.carry + l.places + l.fixed
	kept, saved := results[stacks+l.out:stacks+l.out+l.carry], results[stacks+l.out+l.carry:]
	turns := slices.Concat(kept, places)

	b.ofCarry, b.ofPlaces = floats(kept), floats(places)
	for _, i := range b.ofPlaces {
		back.Over = append(back.Over, places[i])
	}
	var carry, fed []*graph.Node
	for _, i := range b.ofCarry {
		carry = append(carry, vs[at+i])
	}
	for _, i := range floats(fixed) {
		if products := l.body.factorOf(l.fixedParam(i)); len(products) > 0 && !l.Remat {
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
	last, outs := back.Run(g, carry, slices.Concat(fed, turns, saved), fixed, b.turn, nil)

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

type backward struct {
	*loop
	ofCarry, ofPlaces, ofFixed []int
	ofOut                      []int // outputs, after the carried values
	products                   []product
}

// product is a DotGeneral of the body with a fixed value used only in products, like weights. Its gradient is one
// product after the loop, over all places.
type product struct {
	node  *graph.Node
	fixed int
}

// turn builds one backward iteration from the adjoints of outputs and the iteration's parameters. It carries the
// adjoints of carried values and the sums of those of fixed values; it outputs the adjoints of places and the products'
// operands.
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
	loss := Weighted(values, slices.Concat(carry[:len(b.ofCarry)], ofOut))
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
	if loss == nil { // nothing that it depends on has an adjoint
		for i, n := range wrt {
			gradients[i] = graph.Zeros(n.Graph(), n.Shape())
		}
	} else {
		gradients = Gradient(loss, wrt...)
	}
	next, gradients = slices.Concat(gradients[:len(b.ofCarry)]), gradients[len(b.ofCarry):]
	out, gradients = slices.Concat(gradients[:len(b.ofPlaces)]), gradients[len(b.ofPlaces):]
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

func (p product) gradient(l *loop, fixed, other, v *graph.Node) *graph.Node {
	lhs, rhs, sums := operandsOf(p.node)
	batch, fromLhs, fromRhs := resultAxes(1, lhs, rhs)
	of, partner, ofFixed, ofPartner := lhs, rhs, fromLhs, fromRhs
	if rhs.node == l.fixedParam(p.fixed) {
		of, partner, ofFixed, ofPartner = rhs, lhs, fromRhs, fromLhs
	}
	of.node = fixed
	// The gradient sums over the places, a further axis of both.
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

func floats(nodes []*graph.Node) (list []int) {
	for i, n := range nodes {
		if differentiable(n.DType()) {
			list = append(list, i)
		}
	}
	return list
}

func splits(node *graph.Node) []*graph.Node {
	outputs := make([]*graph.Node, node.NumOutputs())
	for _, n := range node.Graph().Nodes()[node.Id():] {
		if n.Type() == graph.NodeTypeSplitNode && n.Inputs()[0] == node {
			outputs[attributesOf(n).int("index")] = n
		}
	}
	return outputs
}

// GoMLX uses this for an output without adjoint.
func isZero(n *graph.Node) bool {
	if n.Type() == graph.NodeTypeBroadcastInDim {
		n = n.Inputs()[0]
	}
	return n == graph.ScalarZero(n.Graph(), n.DType())
}
