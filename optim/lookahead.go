package optim

import (
	"cmp"

	"github.com/gomlx/gomlx/core/graph"
)

// Lookahead keeps a slow copy of each parameter. After every few updates it moves the copies towards the parameters,
// and sets the parameters to them (Zhang et al. 2019, "Lookahead optimizer: k steps forward, 1 step back"). Put it
// last in the chain, before an [Average].
type Lookahead struct {
	// Every counts a parameter's updates between moves. Default 5.
	Every int
	// Share is the part of the way that the copies move. Default 0.5.
	Share float64
}

func (Lookahead) Name() string { return "lookahead" }

func (t Lookahead) Update(s *Step) {
	every, share := cmp.Or(t.Every, 5), cmp.Or(t.Share, 0.5)
	check(every > 0, "Lookahead.Every is %d, expected a positive number of updates", every)
	check(share > 0 && share <= 1, "Lookahead.Share is %g, expected a number above 0, at most 1", share)
	s.After(func() {
		for p := range s.Parameters() {
			updates, slow := s.numberOf(p, "updates", int64(0)), s.Zeros(p, "slow")
			before := updates.NodeValue(s.graph)
			n := graph.AddScalar(before, 1)
			due := graph.IsZero(graph.Mod(n, graph.Scalar(s.graph, n.DType(), float64(every))))
			from := graph.Where(graph.IsZero(before), p.Value, slow.NodeValue(s.graph))
			fast := graph.ConvertDType(p.variable.NodeValue(s.graph), s.dtype)
			moved := graph.Add(from, graph.MulScalar(graph.Sub(fast, from), share))
			s.Set(updates, n)
			s.Set(slow, graph.Where(due, moved, from))
			s.Set(p.variable, graph.ConvertDType(graph.Where(due, moved, fast), p.variable.DType()))
		}
	})
}
