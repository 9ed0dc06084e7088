package optim

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Momentum accumulates the updates: sum = Decay·sum + update, without dampening (Polyak 1964).
type Momentum struct {
	// Decay is usually 0.9. 0 means no momentum.
	Decay float64
	// Nesterov uses Nesterov momentum (Nesterov 1983, as in Sutskever et al. 2013).
	Nesterov bool
}

func (Momentum) Name() string { return "momentum" }

// String has the form that checkpoints of all versions save.
func (t Momentum) String() string {
	ahead := ""
	if t.Nesterov {
		ahead = ", ahead true"
	}
	return fmt.Sprintf("momentum{decay %v%s}", t.Decay, ahead)
}

func (t Momentum) Update(s *Step) {
	share("the momentum", t.Decay)
	s.each(func(p *Parameter) *graph.Node {
		sum := s.Zeros(p, "sum")
		add := func(to *graph.Node) *graph.Node { return graph.Add(p.Update, graph.MulScalar(to, t.Decay)) }
		next := add(sum.NodeValue(s.graph))
		s.Set(sum, next)
		if t.Nesterov {
			return add(next)
		}
		return next
	})
}

func (s *Step) moment(p *Parameter, slot string, decay float64, value *graph.Node) *graph.Node {
	return s.average(s.Zeros(p, slot), decay, value)
}

func (s *Step) average(v *model.Variable, decay float64, value *graph.Node) *graph.Node {
	next := mix(v.NodeValue(s.graph), value, decay)
	s.Set(v, next)
	return next
}

func mix(old, new *graph.Node, decay float64) *graph.Node {
	return graph.Add(graph.MulScalar(old, decay), graph.MulScalar(new, 1-decay))
}

// Lion is the sign of a mix of momentum and gradient (Chen et al. 2023). It needs a rate 3 to 10 times smaller than
// Adam's and a [WeightDecay] larger by the same factor.
type Lion struct {
	// Beta1 is the momentum's share in the mix, default 0.9, Beta2 its decay, default 0.99.
	Beta1, Beta2 float64
}

func (Lion) Name() string { return "lion" }

func (t Lion) Update(s *Step) {
	b1, b2 := cmp.Or(t.Beta1, 0.9), cmp.Or(t.Beta2, 0.99)
	share("Lion.Beta1", b1)
	share("Lion.Beta2", b2)
	s.each(func(p *Parameter) *graph.Node {
		old := s.Zeros(p, "momentum").NodeValue(s.graph)
		s.moment(p, "momentum", b2, p.Update)
		return graph.Sign(mix(old, p.Update, b1))
	})
}

// RMSProp divides by the root of a moving average of squares, without bias correction (Hinton 2012).
type RMSProp struct {
	// Decay is the average's, default 0.9. Epsilon is added under the root, default 1e-8.
	Decay, Epsilon float64
}

func (RMSProp) Name() string { return "rmsprop" }

func (t RMSProp) Update(s *Step) {
	decay, epsilon := cmp.Or(t.Decay, 0.9), cmp.Or(t.Epsilon, 1e-8)
	share("RMSProp.Decay", decay)
	positive("RMSProp.Epsilon", epsilon)
	s.each(func(p *Parameter) *graph.Node {
		squares := s.moment(p, "squares", decay, graph.Square(p.Update))
		return graph.Mul(p.Update, graph.Rsqrt(graph.AddScalar(squares, epsilon)))
	})
}

// WeightDecay adds Rate × parameter to the updates (Loshchilov and Hutter 2019). After [Adam] it makes AdamW; as the
// first link it is L2 regularization.
type WeightDecay struct {
	// Rate is usually 0.01. 0 means no decay.
	Rate float64
	// Match selects the parameters that decay; nil selects all. Most models want RankFrom(2).
	Match Match
}

func (WeightDecay) Name() string { return "weight_decay" }

func (t WeightDecay) Update(s *Step) {
	check(t.Rate >= 0 && t.Rate <= maxFloat, "WeightDecay.Rate is %g, expected a finite number that is not negative", t.Rate)
	decays := s.selects("WeightDecay", t.Match)
	s.each(func(p *Parameter) *graph.Node {
		if t.Rate == 0 || !decays(p) {
			return p.Update
		}
		return graph.Add(p.Update, graph.MulScalar(p.Value, t.Rate))
	})
}

// Scale multiplies the updates by a constant.
func Scale(factor float64) Transformation {
	return stateless{scaleName, factor, func(s *Step) {
		check(factor >= -maxFloat && factor <= maxFloat, "Scale is given %g, expected a finite number", factor)
		s.each(func(p *Parameter) *graph.Node { return graph.MulScalar(p.Update, factor) })
	}}
}

const scaleName = "scale"

// ScaleBySchedule multiplies the updates by a function of the number of earlier updates. At the chain's end it is a
// factor of the learning rate; before a rule it scales the gradients, which [Adam] and similar rules cancel.
//
// As in optax, it counts the steps in which its chain updates any parameter: one trained later has the others' rate.
func ScaleBySchedule(schedule Schedule) Transformation { return scaleBySchedule{schedule} }

type scaleBySchedule struct{ Schedule }

func (scaleBySchedule) Name() string { return "schedule" }

func (t scaleBySchedule) Update(s *Step) {
	count := s.Number(countSlot, int64(0))
	updates := count.NodeValue(s.graph)
	s.Set(count, graph.AddScalar(updates, 1))
	factor := t.Node(updates, s.dtype)
	s.each(func(p *Parameter) *graph.Node { return graph.Mul(p.Update, factor) })
}

// Noise adds normal noise to the updates; as the first link, to the gradients. Its variance is Eta / (1 + t)^Gamma
// after t earlier updates of its chain (Neelakantan et al. 2015). The state's seed decides it, as for dropout, and a
// checkpoint continues it.
type Noise struct {
	// Eta is the initial variance, like 0.01. It has no default.
	Eta float64
	// Gamma is the exponent of the decay. Default 0.55. For constant noise, give a tiny number like 1e-30.
	Gamma float64
}

func (Noise) Name() string { return "noise" }

func (t Noise) Update(s *Step) {
	gamma := cmp.Or(t.Gamma, 0.55)
	positive("Noise.Eta", t.Eta)
	positive("Noise.Gamma", gamma)
	count := s.Number(countSlot, int64(0))
	n := graph.AddScalar(count.NodeValue(s.graph), 1)
	s.Set(count, n)
	deviation := graph.MulScalar(graph.Pow(graph.ConvertDType(n, s.dtype), graph.Scalar(s.graph, s.dtype, -gamma/2)), math.Sqrt(t.Eta))
	s.each(func(p *Parameter) *graph.Node {
		draw := s.model.RandomNormal(s.graph, shapes.Make(s.dtype, p.Shape().Dimensions...))
		return graph.Add(p.Update, graph.Mul(draw, deviation))
	})
}
