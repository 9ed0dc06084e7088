package managed

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

// Remat builds a block of a model whose inner values are not kept for the gradient but computed again when it is their turn
// (Chen et al. 2016, "Training deep nets with sublinear memory cost"): less memory for one more forward pass of the block. It
// is jax.checkpoint without a policy. x, of floating-point numbers, is all that the block may take from the rest of the model
// besides its variables. It works inside the step functions of this package; in a step that does not train it is build(x).
//
// The block is built twice, the second time from the same random numbers; what it changes, as a normalisation's statistics, is
// changed once. It can report nothing. Where the gradient that comes in is not finite, what comes out is NaN.
func Remat(vars *Vars, x *Node, build func(x *Node) *Node) *Node {
	b := builderOf(vars, x)
	if !b.Training() {
		return build(x)
	}
	if !x.DType().IsFloat() {
		panic(fmt.Errorf("Remat: x is %s, expected floating-point numbers", x.Shape()))
	}
	g := b.graph
	before, built := b.seen(), len(g.Nodes())
	once := func(x *Node) *Node {
		reported := len(b.logged) + len(b.wholes)
		y := build(x)
		if len(b.logged)+len(b.wholes) > reported {
			panic(fmt.Errorf("Remat: the block reports something, which would be reported twice: report it outside of the block"))
		}
		return y
	}
	y := once(x)
	for v := range b.seen() {
		if _, used := before[v]; !used { // the block was the first to use it
			before[v] = g.GetParameterByName(v.ParameterName())
		}
	}
	leaves := append([]*Node{x}, b.leaves(x, y, built)...)

	// One node is to have gradients for all leaves, and GoMLX's custom gradients are for nodes of one input. So the leaves lie
	// one after the other in it, and behind them zeros that are added to the block's output: there its gradient comes in.
	// Nothing of it is left when XLA has simplified the program.
	dtype := y.DType()
	for _, n := range leaves {
		switch {
		case n.DType() == dtypes.Float64:
			dtype = dtypes.Float64
		case n.DType() != dtype && dtype != dtypes.Float64:
			dtype = dtypes.Float32
		}
	}
	flat := func(n *Node) *Node { return graph.Reshape(graph.ConvertDType(n, dtype), -1) }
	inputs := 0
	var parts []*Node
	for _, n := range leaves {
		parts, inputs = append(parts, flat(n)), inputs+n.Shape().Size()
	}
	output := func(n *Node) *Node {
		return graph.ConvertDType(graph.Reshape(graph.Slice(n, graph.AxisRange(inputs)), y.Shape().Dimensions...), y.DType())
	}
	zeros := flat(graph.ZerosLike(y))
	lane := graph.IdentityWithCustomGradient(graph.Concatenate(append(parts, zeros), 0), func(_, v *Node) *Node {
		v = graph.StopGradient(output(v))
		// XLA would find that the values are there already, did they not depend on the gradient that came in.
		nothing := graph.MulScalar(graph.ConvertDType(graph.ReduceAllMax(v), x.DType()), 0)
		again := graph.Add(graph.StopGradient(x), nothing)
		if c := b.casting; c != nil && !c.entered {
			c.enter()
			defer c.leave()
		}
		now := b.seen()
		b.see(before)
		loss := graph.ReduceAllSum(graph.Mul(once(again), v))
		b.see(now)
		gradients := autodiff.Gradient(loss, append([]*Node{again}, leaves[1:]...)...)
		var parts []*Node
		for _, n := range gradients {
			parts = append(parts, flat(n))
		}
		return graph.Concatenate(append(parts, zeros), 0)
	})
	return graph.Add(graph.StopGradient(y), output(lane))
}

// seen are the values that the variables have in the graph so far.
func (b *Builder) seen() map[*variable]*Node {
	values := map[*variable]*Node{}
	for v := range b.vars.IterVariables() {
		if v.InUseByGraph(b.graph) {
			values[v] = v.ValueGraph(b.graph)
		}
	}
	return values
}

func (b *Builder) see(values map[*variable]*Node) {
	for v, n := range values {
		v.SetValueGraph(n)
	}
}

// leaves are the trainable variables that y is computed from behind x, as it takes them.
func (b *Builder) leaves(x, y *Node, built int) (leaves []*Node) {
	trainable := map[*Node]bool{}
	for v := range b.vars.IterVariables() {
		if v.Trainable && v.InUseByGraph(b.graph) {
			trainable[v.ValueGraph(b.graph)] = true
			trainable[b.graph.GetParameterByName(v.ParameterName())] = true
		}
	}
	visited := map[*Node]bool{x: true}
	var visit func(n *Node, outside bool)
	visit = func(n *Node, outside bool) {
		if visited[n] {
			return
		}
		visited[n] = true
		if trainable[n] {
			if outside {
				panic(fmt.Errorf("Remat: the block takes %s from outside, which would get no gradient: it may take x and variables alone", n))
			}
			leaves = append(leaves, n)
			return
		}
		if n.StopGradient() {
			return
		}
		for _, input := range n.Inputs() {
			visit(input, outside || int(n.Id()) < built)
		}
	}
	visit(y, false)
	return leaves
}
