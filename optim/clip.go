package optim

import "github.com/gomlx/gomlx/core/graph"

// Clip limits each number of the updates to -limit … limit. At the start of the chain these are the gradients; GoMLX's
// clip_step_by_value clips the finished step.
func Clip(limit float64) Transformation {
	return stateless{"clip", limit, func(s *Step) {
		positive("the limit of Clip", limit)
		s.each(func(p *Parameter) *graph.Node { return graph.ClipScalar(p.Update, -limit, limit) })
	}}
}

// ClipByGlobalNorm scales all updates down together where the root of the sum of all their squares is above a limit
// (Pascanu et al. 2013); below it they pass bit for bit.
func ClipByGlobalNorm(limit float64) Transformation {
	return stateless{"clip_by_global_norm", limit, func(s *Step) {
		positive("the limit of ClipByGlobalNorm", limit)
		norm := s.GlobalNorm()
		if norm == nil {
			return
		}
		s.each(func(p *Parameter) *graph.Node { return shorten(s, p.Update, norm, limit) })
	}}
}

// ClipByNorm scales each parameter's update down where its own norm, the root of the sum of its squares, is above a
// limit; below it the update passes bit for bit.
func ClipByNorm(limit float64) Transformation {
	return stateless{"clip_by_norm", limit, func(s *Step) {
		positive("the limit of ClipByNorm", limit)
		s.each(func(p *Parameter) *graph.Node { return shorten(s, p.Update, norm(p.Update), limit) })
	}}
}

// shorten scales an update down to a norm where its own is above it.
func shorten(s *Step, update, norm *graph.Node, limit float64) *graph.Node {
	most := graph.Scalar(s.graph, s.dtype, limit)
	return graph.Mul(update, graph.Where(graph.LessThan(norm, most), graph.OnesLike(norm), graph.Div(most, norm)))
}

// GlobalNorm is the root of the sum of the squares of all updates, a scalar; nil if there are none. An update that
// is held back alone does not count.
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

// clipByRMS scales each parameter's update down where its root mean square is above a limit: a part of
// [Adafactor].
func clipByRMS(limit float64) Transformation {
	return stateless{"clip_by_rms", limit, func(s *Step) {
		s.each(func(p *Parameter) *graph.Node {
			rms := graph.Sqrt(graph.ReduceAllMean(graph.Square(p.Update)))
			return graph.Div(p.Update, graph.MaxScalar(graph.DivScalar(rms, limit), 1))
		})
	}}
}

// TrustRatio scales each parameter's update to the norm of the parameter (You et al. 2017, LARS); where one
// of the norms is 0 the update passes.
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
