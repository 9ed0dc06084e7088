package nn

import (
	"cmp"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
)

// BatchNorm normalizes all axes but the last, [batch, …, n]: in training by mean and variance of the batch, else by
// running averages (Ioffe and Szegedy 2015). The statistics exclude padding examples and masked places ([MaskOf]).
//
// If the optimizer freezes scale and offset (optim.Frozen), training also uses the running averages, and keeps them.
// If a step trains neither for another reason (managed.TrainOnly, graph.StopGradient), it normalizes by the batch and
// keeps the averages.
//
// Step n uses the momentum min(Momentum, 1 - 1/n), against initial bias.
type BatchNorm struct {
	Momentum float64 // decay of the running averages, 0.99 if 0; for short runs 0.9
	Epsilon  float64 // added to the variance, 1e-3 if 0
	AsTorch  bool    // the running averages of PyTorch: Momentum from the first step on, and variances over n-1
}

// Apply has the variables of GoMLX's norm.BatchNorm, in batch_normalization: scale, offset, mean, variance and
// avg_weight, the number of steps, each [n].
func (n BatchNorm) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(n, scope, x) }

func (n BatchNorm) build(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("BatchNorm", scope, x, 1, "[batch, …, n]")
	if !(n.Momentum >= 0 && n.Momentum < 1) || !(n.Epsilon >= 0 && n.Epsilon < 1e30) {
		fail("BatchNorm", scope, "Momentum is %v and Epsilon %v, expected at least 0 and below 1, and a finite number of at least 0", n.Momentum, n.Epsilon)
	}
	mask := MaskOf(x)
	return precise(x, func(x *graph.Node) *graph.Node { return n.normal(scope, x, mask) })
}

func (n BatchNorm) normal(scope *model.Scope, x, mask *graph.Node) *graph.Node {
	momentum, epsilon := cmp.Or(n.Momentum, 0.99), epsilon(n.Epsilon, 1e-3)
	shape := shapes.Make(x.DType(), x.Shape().Dimensions[x.Rank()-1])
	inside := scope.In(norm.BatchNormalizationScopeName)
	of := func(name string, initial model.VariableInitializer, trainable bool) *model.Variable {
		return inside.WithInitializer(initial).VariableWithShape(name, shape).SetTrainable(trainable)
	}
	scale, offset := of("scale", graph.Ones, true), of("offset", graph.Zeros, true)
	mean, variance, steps := of("mean", graph.Zeros, false), of("variance", graph.Ones, false), of("avg_weight", graph.Zeros, false)

	g, width := x.Graph(), shape.Dimensions[0]
	rows := graph.Reshape(x, -1, width)
	normalized := func(off, variance *graph.Node) *graph.Node {
		y := graph.Div(off, graph.Sqrt(graph.AddScalar(variance, epsilon)))
		y = graph.Add(graph.Mul(y, graph.ExpandAxes(scale.NodeValue(g), 0)), graph.ExpandAxes(offset.NodeValue(g), 0))
		return graph.Reshape(y, x.Shape().Dimensions...)
	}
	step := layering.StepOf(x)
	if !scope.IsTraining(g) || step != nil && step.Freezes(scale.Path(), shape) && step.Freezes(offset.Path(), shape) {
		return normalized(graph.Sub(rows, graph.ExpandAxes(mean.NodeValue(g), 0)), graph.ExpandAxes(variance.NodeValue(g), 0))
	}

	var examples *graph.Node
	if step != nil {
		examples = step.Examples()
	}
	if examples != nil && (x.Rank() < 2 || x.Shape().Dimensions[0] != examples.Shape().Dimensions[0]) {
		fail("BatchNorm", scope, "the input is %s, but the batch is padded to %d examples: expected [batch, …, n], an example in each row of the first axis",
			x.Shape(), examples.Shape().Dimensions[0])
	}
	if mask != nil && mask.Rank() >= x.Rank() {
		fail("BatchNorm", scope, "the mask is %s, expected bool of the first axes of the input %s", mask.Shape(), x.Shape())
	}
	var counts *graph.Node
	for _, m := range []*graph.Node{examples, mask} {
		if m == nil {
			continue
		}
		for m.Rank() < x.Rank() {
			m = graph.ExpandAxes(m, -1)
		}
		m = graph.Reshape(graph.BroadcastToDims(m, x.Shape().Dimensions...), -1, width)
		if counts != nil {
			m = graph.LogicalAnd(counts, m)
		}
		counts = m
	}
	meanOf := func(v *graph.Node) *graph.Node { return graph.ReduceAndKeep(v, graph.ReduceMean, 0) }
	number := graph.Scalar(g, x.DType(), rows.Shape().Dimensions[0])
	if counts != nil {
		number = graph.MaxScalar(graph.ReduceSum(graph.ConvertDType(counts, x.DType()), 0), 1)
		meanOf = func(v *graph.Node) *graph.Node {
			return graph.ExpandAxes(graph.Div(graph.ReduceSum(graph.Where(counts, v, graph.ZerosLike(v)), 0), number), 0)
		}
	}
	average := meanOf(rows)
	off := graph.Sub(rows, average)
	spread := meanOf(graph.Square(off))

	count := graph.OnePlus(steps.NodeValue(g))
	steps.SetNodeValue(count)
	kept, unbiased := graph.MinScalar(graph.OneMinus(graph.Reciprocal(count)), momentum), spread
	if n.AsTorch {
		kept = graph.FillScalar(g, shape, momentum)
		unbiased = graph.Mul(spread, graph.Div(number, graph.MaxScalar(graph.AddScalar(number, -1), 1)))
	}
	follow := func(v *model.Variable, now *graph.Node) {
		v.SetNodeValue(graph.Add(graph.Mul(kept, v.NodeValue(g)), graph.Mul(graph.OneMinus(kept), graph.Squeeze(now, 0))))
	}
	follow(mean, average)
	follow(variance, unbiased)
	if step != nil {
		step.Normalised(steps)
	}
	if l2 := model.GetParamOr(inside, regularizer.ParamL2, 0.0); l2 > 0 {
		regularizer.L2(l2)(g, scale)
	}
	return normalized(off, spread)
}
