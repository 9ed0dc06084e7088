package optim

import "github.com/gomlx/gomlx/core/graph"

// Accumulate updates once per k batches: every k-th passes on the mean of their updates, the others hold the
// parameters back. Earlier links see every batch, later ones, with their counts and schedules, only the means.
//
// Each parameter counts its own batches, also in a group and with managed.TrainOnly. A run can be resumed at any
// batch.
func Accumulate(k int) Transformation { return accumulate(k) }

type accumulate int

func (accumulate) Name() string { return "accumulate" }

func (k accumulate) Update(s *Step) {
	check(k >= 1, "Accumulate is given %d, expected 1 batch or more", int(k))
	for p := range s.Parameters() {
		batches, v := s.numberOf(p, "batches", int32(0)), s.Zeros(p, "mean")
		n := graph.AddScalar(batches.NodeValue(s.graph), 1)
		full := graph.GreaterOrEqual(n, graph.Scalar(s.graph, n.DType(), float64(k)))
		s.Set(batches, graph.Where(full, graph.ZerosLike(n), n))
		mean := v.NodeValue(s.graph)
		mean = graph.Add(mean, graph.Div(graph.Sub(p.Update, mean), graph.ConvertDType(n, s.dtype)))
		s.Set(v, graph.Where(full, graph.ZerosLike(mean), mean))
		p.Update = mean
		if p.gate != nil {
			full = graph.LogicalAnd(p.gate, full)
		}
		s.require(p, full)
	}
}
