package optim

import (
	"cmp"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
)

// Adam divides a moving average of the updates by the root of a moving average of their squares, both corrected for
// bias (Kingma and Ba 2015). Followed by [WeightDecay] it is AdamW.
//
// Its variables have the names of GoMLX's Adam, /AdamOptimizer/…, under a managed.WithStepOptimizer's scope: either can
// continue the other's training.
type Adam struct {
	// Beta1 and Beta2 are the decays of the averages of updates and squares. Defaults 0.9 and 0.999. For 0, as in
	// Wasserstein GANs, give a tiny number like 1e-30.
	Beta1, Beta2 float64
	// Epsilon is added to the root. Default 1e-8.
	Epsilon float64
}

func (Adam) Name() string { return "adam" }

func (t Adam) Update(s *Step) {
	t.update(s, func(squares *model.Variable, update, unbiased *graph.Node, decay float64) *graph.Node {
		return graph.Sqrt(graph.Mul(s.average(squares, decay, graph.Square(update)), unbiased))
	})
}

// Adamax is [Adam] with a decaying maximum instead of the root of squares (section 7 of the same paper). Epsilon is
// added to the maximum, as in Keras, not in optax.
type Adamax Adam

func (Adamax) Name() string { return "adamax" }

func (t Adamax) Update(s *Step) {
	Adam(t).update(s, func(largest *model.Variable, update, _ *graph.Node, decay float64) *graph.Node {
		next := graph.Max(graph.MulScalar(largest.NodeValue(s.graph), decay), graph.Abs(update))
		s.Set(largest, next)
		return next
	})
}

func (t Adam) update(s *Step, size func(moment *model.Variable, update, unbiased *graph.Node, decay float64) *graph.Node) {
	b1, b2, epsilon := cmp.Or(t.Beta1, 0.9), cmp.Or(t.Beta2, 0.999), cmp.Or(t.Epsilon, 1e-8)
	share("Adam.Beta1", b1)
	share("Adam.Beta2", b2)
	positive("Adam.Epsilon", epsilon)
	// GoMLX names the moments after the parameter alone; the link's name separates them. With common moments but own
	// counts, an optimizer with a scope would not be Adam.
	link := strings.TrimPrefix(strings.TrimPrefix(s.scope, scopeIn(s.model)), "/adam")
	moment := func(p *Parameter, which string) *model.Variable {
		return s.zerosAt(p, adamPath(s.model.Scope(), link, p.Name()+which), p.Shape().Dimensions)
	}
	var steps *model.Variable // for GoMLX's Adam; lazo counts per parameter
	s.each(func(p *Parameter) *graph.Node {
		if steps == nil {
			steps = s.ofAll(s.model.Store().VariableWithShape(adamPath(s.model.Scope(), link, "step"), shapes.Make(s.dtype), initializer.Zero))
			s.Set(steps, graph.AddScalar(steps.NodeValue(s.graph), 1))
		}
		mean := graph.Mul(s.average(moment(p, "_1st_moment"), b1, p.Update), s.unbias(p, b1, 0))
		return graph.Div(mean, graph.AddScalar(size(moment(p, "_2nd_moment"), p.Update, s.unbias(p, b2, 0), b2), epsilon))
	})
}

// LAMB is [Adam] with weight decay, whose updates are scaled to the norm of their parameters (You et al. 2020).
type LAMB struct {
	// Beta1 and Beta2 are as in [Adam]: 0.9 and 0.999. Epsilon is 1e-6.
	Beta1, Beta2, Epsilon float64
	// Decay is added before the norms. Default: none.
	Decay WeightDecay
}

func (LAMB) Name() string { return "lamb" }

func (t LAMB) Update(s *Step) {
	Chain{Adam{t.Beta1, t.Beta2, cmp.Or(t.Epsilon, 1e-6)}, t.Decay, TrustRatio()}.Update(s)
}
