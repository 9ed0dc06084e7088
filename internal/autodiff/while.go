package autodiff

import (
	"errors"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// While traces a condition and a body and builds a loop, without a gradient. changed is as in [Loop.Run].
func While(g *graph.Graph, values []*graph.Node, condition func(values []*graph.Node) *graph.Node, body func(values []*graph.Node) []*graph.Node,
	changed func() (before, after []*graph.Node)) (last []*graph.Node) {
	params, first, end := tracing(g, false, shapesOf(values))
	in := params[0]
	more := condition(in)
	if before, _ := changed(); len(before) > 0 {
		panic(errors.New("autodiff: while: the condition sets variables or draws random numbers: only the body may"))
	}
	next := body(in)
	before, after := changed()
	values, next, in = slices.Concat(values, before), slices.Concat(next, after), slices.Concat(in, before)
	turn, ask := cut(g, first, in, next), cut(g, first, in, []*graph.Node{more})
	end()
	state := slices.Concat(values, turn.captured, ask.captured)
	n, k := len(values), len(turn.captured)
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parametersLike(g, state)
		return ask.at(p[:n], p[n+k:], nil).all(ask.outputs)
	})
	loop := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parametersLike(g, state)
		return slices.Concat(turn.at(p[:n], p[n:n+k], nil).all(turn.outputs), p[n:])
	})
	last = graph.While(cond, loop, state...)
	noteWritten(last[0])
	return last[:n]
}
