package optim

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// Muon makes the momentum of each matrix [inputs, outputs] orthogonal by five Newton–Schulz steps (Jordan et al. 2024).
// It takes only matrices; the other parameters need [Groups].
type Muon struct {
	// Beta is the momentum's decay, default 0.95. Epsilon is added to the norm, default 1e-8.
	Beta, Epsilon float64
	// RMS is the root mean square of an update before the rate, 0.2 in Keras's Muon. 0 scales by √(outputs/inputs), at
	// least 1, as in optax.
	RMS float64
	// Plain turns off Nesterov momentum.
	Plain bool
}

func (Muon) Name() string { return "muon" }

func (t Muon) Update(s *Step) {
	beta, epsilon := cmp.Or(t.Beta, 0.95), cmp.Or(t.Epsilon, 1e-8)
	check(t.RMS >= 0 && !math.IsInf(t.RMS, 0), "Muon.RMS is %v, expected a finite number of at least 0", t.RMS)
	share("Muon.Beta", beta)
	positive("Muon.Epsilon", epsilon)
	s.each(func(p *Parameter) *graph.Node {
		check(p.Shape().Rank() == 2, "Muon: %s is %s, expected a matrix: put it into a group of another rule", p.Name(), p.Shape())
		average := s.moment(p, "momentum", beta, p.Update)
		if t.Plain {
			average = graph.Mul(average, s.unbias(p, beta, 0))
		} else {
			ahead := graph.Mul(average, s.unbias(p, beta, 1))
			average = mix(ahead, graph.Mul(p.Update, s.unbias(p, beta, 0)), beta)
		}
		inputs, outputs := float64(p.Shape().Dimensions[0]), float64(p.Shape().Dimensions[1])
		scale := graph.Sqrt(graph.Scalar(s.graph, s.dtype, max(1, outputs/inputs)))
		if t.RMS != 0 {
			scale = graph.Scalar(s.graph, s.dtype, t.RMS*math.Sqrt(max(inputs, outputs)))
		}
		return graph.Mul(orthogonal(average, epsilon), scale)
	})
}

// orthogonal approximates U·Vᵀ of x = U·S·Vᵀ: singular values end between 0.7 and 1.2.
func orthogonal(x *graph.Node, epsilon float64) *graph.Node {
	const steps, a, b, c = 5, 3.4445, -4.7750, 2.0315
	tall := x.Shape().Dimensions[0] > x.Shape().Dimensions[1]
	if tall { // to multiply the smaller square matrix
		x = graph.Transpose(x, 0, 1)
	}
	x = graph.Div(x, graph.AddScalar(norm(x), epsilon))
	for range steps {
		square := graph.Dot(x, graph.Transpose(x, 0, 1)).Product()
		polynomial := graph.Add(graph.MulScalar(square, b), graph.Dot(graph.MulScalar(square, c), square).Product())
		x = graph.Add(graph.MulScalar(x, a), graph.Dot(polynomial, x).Product())
	}
	if tall {
		x = graph.Transpose(x, 0, 1)
	}
	return x
}
