package optim

import "github.com/gomlx/gomlx/core/graph"

// Clip limits the updates; at the chain's start, the gradients. Exactly one field must be set.
type Clip struct {
	// Value limits each number to -Value … Value. GoMLX's clip_step_by_value clips the finished step.
	Value float64
	// Norm scales a parameter's update down to this L2 norm.
	Norm float64
	// GlobalNorm scales all updates down together to this L2 norm of all (Pascanu et al. 2013). Smaller updates pass
	// bit-identical.
	GlobalNorm float64
}

func (c Clip) Name() string {
	name, _ := c.set()
	return name
}

// String is as "clip_by_norm(1)".
func (c Clip) String() string {
	name, limit := c.set()
	return name + "(" + describe(limit) + ")"
}

func (c Clip) set() (name string, limit float64) {
	switch {
	case c.Norm != 0:
		return "clip_by_norm", c.Norm
	case c.GlobalNorm != 0:
		return "clip_by_global_norm", c.GlobalNorm
	}
	return "clip", c.Value
}

func (c Clip) Update(s *Step) {
	name, limit := c.set()
	positive("the limit of "+name, limit)
	check(limit == c.Value+c.Norm+c.GlobalNorm, "Clip%+v: expected exactly one limit", struct{ Value, Norm, GlobalNorm float64 }(c))
	var global *graph.Node
	if c.GlobalNorm != 0 {
		global = s.GlobalNorm()
	}
	s.each(func(p *Parameter) *graph.Node {
		switch {
		case c.Norm != 0:
			return shorten(s, p.Update, norm(p.Update), limit)
		case c.GlobalNorm != 0:
			return shorten(s, p.Update, global, limit)
		}
		return graph.ClipScalar(p.Update, -limit, limit)
	})
}

func shorten(s *Step, update, norm *graph.Node, limit float64) *graph.Node {
	most := graph.Scalar(s.graph, s.dtype, limit)
	return graph.Mul(update, graph.Where(graph.LessThan(norm, most), graph.OnesLike(norm), graph.Div(most, norm)))
}

// GlobalNorm returns the L2 norm of all updates, a scalar, or nil without updates. Parameters held back individually
// do not count.
func (s *Step) GlobalNorm() *graph.Node {
	var sum *graph.Node
	for p := range s.Parameters() {
		square := graph.ReduceAllSum(graph.Square(p.Update))
		if p.gate != nil {
			square = graph.Where(p.gate, square, graph.ZerosLike(square))
		}
		if sum == nil {
			sum = square
		} else {
			sum = graph.Add(sum, square)
		}
	}
	if sum == nil {
		return nil
	}
	return graph.Sqrt(sum)
}

func clipByRMS(limit float64) Transformation {
	return stateless{"clip_by_rms", limit, func(s *Step) {
		s.each(func(p *Parameter) *graph.Node {
			rms := graph.Sqrt(graph.ReduceAllMean(graph.Square(p.Update)))
			return graph.Div(p.Update, graph.MaxScalar(graph.DivScalar(rms, limit), 1))
		})
	}}
}

// TrustRatio scales each parameter's update to the parameter's norm (You et al. 2017, LARS). If a norm is 0, the update
// passes unchanged.
func TrustRatio() Transformation {
	return stateless{"trust_ratio", nil, func(s *Step) {
		s.each(func(p *Parameter) *graph.Node {
			value, update := norm(p.Value), norm(p.Update)
			zero := graph.LogicalOr(graph.IsZero(value), graph.IsZero(update))
			return graph.Mul(p.Update, graph.Where(zero, graph.OnesLike(value), graph.Div(value, update)))
		})
	}}
}

func norm(x *graph.Node) *graph.Node { return graph.Sqrt(graph.ReduceAllSum(graph.Square(x))) }
