package optim

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

type number struct {
	host float64
	node *graph.Node
}

func constant(v float64) number { return number{host: v} }

func (a number) like(n *graph.Node) *graph.Node {
	if a.node != nil {
		return a.node
	}
	return graph.Scalar(n.Graph(), n.DType(), a.host)
}

func (a number) apply(b number, host func(x, y float64) float64, build func(x, y *graph.Node) *graph.Node) number {
	switch {
	case a.node != nil:
		return number{node: build(a.node, b.like(a.node))}
	case b.node != nil:
		return number{node: build(a.like(b.node), b.node)}
	}
	return number{host: host(a.host, b.host)}
}

func (a number) plus(b number) number {
	return a.apply(b, func(x, y float64) float64 { return x + y }, graph.Add)
}

func (a number) minus(b number) number {
	return a.apply(b, func(x, y float64) float64 { return x - y }, graph.Sub)
}

func (a number) times(b number) number {
	return a.apply(b, func(x, y float64) float64 { return x * y }, graph.Mul)
}

func (a number) over(b number) number {
	return a.apply(b, func(x, y float64) float64 { return x / y }, graph.Div)
}

func (a number) power(b number) number { return a.apply(b, math.Pow, graph.Pow) }

func (a number) atMost(b number) number {
	return a.apply(b, func(x, y float64) float64 { return min(x, y) }, graph.Min)
}

func (a number) atLeast(b number) number {
	return a.apply(b, func(x, y float64) float64 { return max(x, y) }, graph.Max)
}

// whole is the integer quotient of whole numbers. The half absorbs rounding.
func (a number) whole(b number) number {
	q := a.plus(constant(0.5)).over(b)
	if q.node != nil {
		return number{node: graph.Floor(q.node)}
	}
	return number{host: math.Floor(q.host)}
}

func (a number) cosine() number {
	if a.node != nil {
		return number{node: graph.Cos(a.node)}
	}
	return number{host: math.Cos(a.host)}
}

func (a number) whereBelow(b, yes, no number) number {
	if a.node == nil && b.node == nil {
		if a.host < b.host {
			return yes
		}
		return no
	}
	beside := cmp.Or(a.node, b.node)
	return number{node: graph.Where(graph.LessThan(a.like(beside), b.like(beside)), yes.like(beside), no.like(beside))}
}
