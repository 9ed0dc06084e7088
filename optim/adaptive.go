package optim

import (
	"cmp"

	"github.com/gomlx/gomlx/core/graph"
)

// Adagrad divides by the root of the sum of all squares so far (Duchi, Hazan and Singer 2011).
type Adagrad struct {
	// Start is the initial sum, default 0.1. Epsilon is added under the root, default 1e-7.
	Start, Epsilon float64
}

func (Adagrad) Name() string { return "adagrad" }

func (t Adagrad) Update(s *Step) {
	start, epsilon := cmp.Or(t.Start, 0.1), cmp.Or(t.Epsilon, 1e-7)
	positive("Adagrad.Start", start)
	positive("Adagrad.Epsilon", epsilon)
	s.each(func(p *Parameter) *graph.Node {
		v := s.Zeros(p, "squares") // Start is added later: it is a setting, not state
		squares := graph.Add(v.NodeValue(s.graph), graph.Square(p.Update))
		s.Set(v, squares)
		return graph.Mul(p.Update, graph.Rsqrt(graph.AddScalar(squares, start+epsilon)))
	})
}

// Adadelta is [RMSProp] times the root of a moving average of its squared updates. The updates are in the parameters'
// unit, so the rate may be 1 (Zeiler 2012).
type Adadelta struct {
	// Decay is that of both averages, default 0.9 (0.95 in the paper). Epsilon is added under both roots, default 1e-6.
	Decay, Epsilon float64
}

func (Adadelta) Name() string { return "adadelta" }

func (t Adadelta) Update(s *Step) {
	decay, epsilon := cmp.Or(t.Decay, 0.9), cmp.Or(t.Epsilon, 1e-6)
	share("Adadelta.Decay", decay)
	positive("Adadelta.Epsilon", epsilon)
	s.each(func(p *Parameter) *graph.Node {
		squares := s.moment(p, "squares", decay, graph.Square(p.Update))
		before := s.Zeros(p, "updates").NodeValue(s.graph)
		update := graph.Mul(p.Update, graph.Mul(graph.Sqrt(graph.AddScalar(before, epsilon)), graph.Rsqrt(graph.AddScalar(squares, epsilon))))
		s.moment(p, "updates", decay, graph.Square(update))
		return update
	})
}

// Nadam is [Adam] with constant Nesterov momentum, which grows in the paper (Dozat 2016).
type Nadam struct {
	// Beta1 and Beta2 are as in [Adam]: 0.9 and 0.999. Epsilon is added to the root, default 1e-8.
	Beta1, Beta2, Epsilon float64
}

func (Nadam) Name() string { return "nadam" }

func (t Nadam) Update(s *Step) {
	b1, b2, epsilon := cmp.Or(t.Beta1, 0.9), cmp.Or(t.Beta2, 0.999), cmp.Or(t.Epsilon, 1e-8)
	share("Nadam.Beta1", b1)
	share("Nadam.Beta2", b2)
	positive("Nadam.Epsilon", epsilon)
	s.each(func(p *Parameter) *graph.Node {
		mean := graph.Mul(s.moment(p, "momentum", b1, p.Update), s.unbias(p, b1, 1))
		squares := graph.Mul(s.moment(p, "squares", b2, graph.Square(p.Update)), s.unbias(p, b2, 0))
		return graph.Div(mix(mean, graph.Mul(p.Update, s.unbias(p, b1, 0)), b1), graph.AddScalar(graph.Sqrt(squares), epsilon))
	})
}
