package optim

import "github.com/gomlx/gomlx/core/graph"

// Accumulate makes one update of k batches: it passes on the mean of their updates at every k-th, and holds the
// parameters back at the others. The links before it see every batch, the links after it only the means; their counts,
// their schedules and the parameters stand still meanwhile. With losses that are means over batches of one size, the
// mean of k gradients is the gradient of the k batches as one.
//
// Each parameter counts the batches that it was trained on, so it also works in a group, with [managed.TrainOnly]
// and where parameters are trained later. The mean so far is in the state, so a run can stop and resume in the
// middle.
//
// [managed.TrainOnly]: https://pkg.go.dev/github.com/lazo-ml/lazo/managed#TrainOnly
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
