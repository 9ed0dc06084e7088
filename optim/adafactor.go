package optim

import (
	"cmp"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Adafactor is [RMSProp] that saves memory: of a matrix's squares it stores row and column means (Shazeer and Stern
// 2018). It limits the updates' root mean square and scales them by the parameter's, so the rate is relative, like
// 0.01.
type Adafactor struct {
	// Decay is the moving average's exponent: update t keeps 1 - t^-Decay. Default 0.8.
	Decay float64
	// Factored is the minimum length of both longest axes for factored squares. Default 128.
	Factored int
	// Limit is the maximum root mean square of an update. Default 1.
	Limit float64
	// Epsilon is added to the squares. Default 1e-30.
	Epsilon float64
	// Absolute turns off the scaling by the parameter's root mean square (at least 1e-3).
	Absolute bool
}

func (Adafactor) Name() string { return "adafactor" }

func (t Adafactor) Update(s *Step) {
	power, epsilon, limit, factored := cmp.Or(t.Decay, 0.8), cmp.Or(t.Epsilon, 1e-30), cmp.Or(t.Limit, 1), cmp.Or(t.Factored, 128)
	positive("Adafactor.Decay", power)
	positive("Adafactor.Epsilon", epsilon)
	positive("Adafactor.Limit", limit)
	check(factored > 0, "Adafactor.Factored is %d, expected a positive number", factored)
	average := func(p *Parameter, v *model.Variable, value *graph.Node) *graph.Node {
		forget := s.ofTime(p, 0, -power, func(n *graph.Node) *graph.Node {
			return graph.Pow(n, graph.Scalar(s.graph, s.dtype, -power))
		})
		next := graph.Add(graph.Mul(graph.OneMinus(forget), v.NodeValue(s.graph)), graph.Mul(forget, value))
		s.Set(v, next)
		return next
	}
	s.each(func(p *Parameter) *graph.Node {
		squares := graph.AddScalar(graph.Square(p.Update), epsilon)
		shorter, longer, ok := longestAxes(p.Shape().Dimensions, factored)
		if !ok {
			return graph.Mul(p.Update, graph.Rsqrt(average(p, s.Zeros(p, "squares"), squares)))
		}
		without := func(axis int) []int { return slices.Delete(slices.Clone(p.Shape().Dimensions), axis, axis+1) }
		rows := average(p, s.zeros(p, "rows", without(longer)...), graph.ReduceMean(squares, longer))
		columns := average(p, s.zeros(p, "columns", without(shorter)...), graph.ReduceMean(squares, shorter))
		axis := shorter
		if shorter > longer {
			axis-- // removed from rows
		}
		rows = graph.Div(rows, graph.ReduceAndKeep(rows, graph.ReduceMean, axis))
		return graph.Mul(graph.Mul(p.Update, graph.InsertAxes(graph.Rsqrt(rows), longer)), graph.InsertAxes(graph.Rsqrt(columns), shorter))
	})
	clipByRMS(limit).Update(s)
	if t.Absolute {
		return
	}
	s.each(func(p *Parameter) *graph.Node {
		return graph.Mul(p.Update, graph.MaxScalar(graph.Sqrt(graph.ReduceAllMean(graph.Square(p.Value))), 1e-3))
	})
}

// longestAxes: of equal axes, the later one is longer.
func longestAxes(dimensions []int, length int) (shorter, longer int, ok bool) {
	if len(dimensions) < 2 {
		return 0, 0, false
	}
	axes := make([]int, len(dimensions))
	for i := range axes {
		axes[i] = i
	}
	slices.SortStableFunc(axes, func(a, b int) int { return dimensions[a] - dimensions[b] })
	shorter, longer = axes[len(axes)-2], axes[len(axes)-1]
	return shorter, longer, dimensions[shorter] >= length
}
