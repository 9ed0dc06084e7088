package autodiff

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// While traces a condition and a body, and writes a loop of them. changed is as in [Loop.Run]. It has no gradient.
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
	values, next, in = concat(values, before), concat(next, after), concat(in, before)
	turn, ask := cut(g, first, false, in, next), cut(g, first, false, in, []*graph.Node{more})
	end()
	state := concat(values, turn.captured, ask.captured)
	parameters := func(g *graph.Graph) []*graph.Node {
		p := make([]*graph.Node, len(state))
		for i, s := range state {
			p[i] = graph.Parameter(g, fmt.Sprintf("s%d", i), s.Shape())
		}
		return p
	}
	n, k := len(values), len(turn.captured)
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parameters(g)
		return ask.at(p[:n], p[n+k:], nil).all(ask.outputs)
	})
	loop := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := parameters(g)
		return concat(turn.at(p[:n], p[n:n+k], nil).all(turn.outputs), p[n:])
	})
	return graph.While(cond, loop, state...)[:n]
}
