package losses

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/xla/ops"
)

const ctc = "ctc"

// CTC is the connectionist temporal classification loss (Graves et al. 2006), [batch], in nats: minus the logarithm
// of the probability of all alignments of an example's labels with the frames. Logits are [batch, frames, classes];
// class 0 is the blank. Labels are integers [batch, n] from 1, with 0 after the last. Masked frames do not count. The
// loss is +Inf for labels that need more frames, and NaN for a label of another class, or after a 0; the gradient of
// both is 0.
func CTC(labels, logits *graph.Node) *graph.Node {
	l, o := labels.Shape(), logits.Shape()
	if !l.DType.IsInt() || l.Rank() != 2 || !o.DType.IsFloat() || o.Rank() != 3 || o.Dimensions[2] < 2 || l.Dimensions[0] != o.Dimensions[0] ||
		l.Dimensions[1] == 0 || o.Dimensions[1] == 0 {
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected integers [batch, labels], and logits [batch, frames, classes], "+
			"with the blank as class 0", ctc, l, o))
	}
	outputs.NoProbabilities(ctc, logits)
	g, batch, n, frames, classes := labels.Graph(), o.Dimensions[0], l.Dimensions[1], o.Dimensions[1], o.Dimensions[2]
	if o.DType.Size() < dtypes.Float32.Size() {
		return graph.ConvertDType(CTC(labels, withMask(graph.ConvertDType(logits, dtypes.Float32), logits)), o.DType)
	}
	labels = graph.ConvertDType(labels, dtypes.Int32)
	if n == 1 {
		labels, n = graph.Concatenate([]*graph.Node{labels, graph.ZerosLike(labels)}, 1), 2
	}
	zero := graph.Scalar(g, dtypes.Int32, 0)
	first := graph.Slice(labels, graph.AxisRange(), graph.AxisRange(0, n-1))
	rest := graph.Slice(labels, graph.AxisRange(), graph.AxisRange(1, n))
	given := graph.NotEqual(labels, zero)
	known := graph.LogicalAnd(graph.GreaterOrEqual(labels, zero), graph.LessThan(labels, graph.Scalar(g, dtypes.Int32, classes)))
	known = graph.LogicalAll(known, 1)
	known = graph.LogicalAnd(known, graph.LogicalAll(graph.LogicalOr(graph.NotEqual(first, zero), graph.Equal(rest, zero)), 1))
	repeats := graph.LogicalAnd(graph.Equal(first, rest), graph.NotEqual(rest, zero))
	count := func(where *graph.Node) *graph.Node {
		return graph.ReduceSum(graph.ConvertDType(where, dtypes.Int32), 1)
	}
	length := count(given)

	mask := layering.Masks(logits)[logits]
	if mask == nil {
		mask = graph.Const(g, true)
		mask = graph.BroadcastToDims(mask, batch, frames)
	}
	enough := graph.LessOrEqual(graph.Add(length, count(repeats)), count(mask))

	// Of the 2n+1 states, the even ones are blanks, 2i+1 is the label i.
	log := graph.LogSoftmax(logits)
	symbols := graph.OneHot(labels, classes, o.DType)
	emitted := graph.Einsum("bfc,bnc->bfn", log, symbols)
	blank := graph.BroadcastToDims(graph.Slice(log, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, 1)), batch, frames, n)
	states := 2*n + 1
	each := graph.Reshape(graph.Stack([]*graph.Node{blank, emitted}, -1), batch, frames, states-1)
	each = graph.Concatenate([]*graph.Node{each, graph.Slice(log, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, 1))}, -1)

	never := graph.Scalar(g, o.DType, impossible)
	nowhere := func(width int) *graph.Node { return graph.BroadcastToDims(never, batch, width) }
	at := graph.Iota(g, shapes.Make(dtypes.Int32, batch, states), 1)
	start := graph.Where(graph.Equal(at, zero), graph.ScalarZero(g, o.DType), never)
	// A label may follow another one without a blank between them.
	skips := graph.Concatenate([]*graph.Node{graph.BroadcastToDims(graph.Const(g, false), batch, 1), graph.NotEqual(first, rest)}, 1)
	skips = graph.Reshape(graph.Stack([]*graph.Node{graph.BroadcastToDims(graph.Const(g, false), batch, n), skips}, -1), batch, states-1)
	skips = graph.Concatenate([]*graph.Node{skips, graph.BroadcastToDims(graph.Const(g, false), batch, 1)}, 1)

	back := func(alpha *graph.Node, by int) *graph.Node {
		return graph.Concatenate([]*graph.Node{nowhere(by), graph.Slice(alpha, graph.AxisRange(), graph.AxisRange(0, states-by))}, 1)
	}
	last, _ := ops.Scan([]*graph.Node{start}, []*graph.Node{each, mask}, func(carry, x []*graph.Node) (next, out []*graph.Node) {
		alpha := carry[0]
		sum := logSum(alpha, back(alpha, 1), graph.Where(skips, back(alpha, 2), never))
		counts := graph.BroadcastToDims(graph.ExpandAxes(x[1], -1), batch, states)
		return []*graph.Node{graph.Where(counts, graph.Add(sum, x[0]), alpha)}, nil
	}, ops.Axis(1))

	end := graph.BroadcastToDims(graph.ExpandAxes(graph.MulScalar(length, 2), -1), batch, states)
	ends := graph.LogicalOr(graph.Equal(at, end), graph.Equal(graph.AddScalar(at, 1), end))
	reached := graph.Where(ends, last[0], never)
	most := graph.StopGradient(graph.ReduceAndKeep(reached, graph.ReduceMax, 1))
	sum := graph.Add(graph.Squeeze(most, 1), graph.Log(graph.ReduceSum(graph.Exp(graph.Sub(reached, most)), 1)))
	loss := graph.Where(enough, graph.Neg(sum), graph.Scalar(g, o.DType, math.Inf(1)))
	return outputs.OrNaN(known, loss)
}

// impossible is a log-probability below all others, and finite, so that no difference is NaN.
const impossible = -1e30

func logSum(of ...*graph.Node) *graph.Node {
	most := of[0]
	for _, x := range of[1:] {
		most = graph.Max(most, x)
	}
	most = graph.StopGradient(most)
	var sum *graph.Node
	for _, x := range of {
		e := graph.Exp(graph.Sub(x, most))
		if sum == nil {
			sum = e
		} else {
			sum = graph.Add(sum, e)
		}
	}
	return graph.Add(most, graph.Log(sum))
}

func withMask(y, x *graph.Node) *graph.Node {
	layering.HandOn(x, y)
	return y
}
