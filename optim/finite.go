package optim

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// SkipNonFinite holds the step back if an update has an infinity or a NaN. Put it first in the chain, or first in a
// group to hold back only that. Its variable skipped counts skipped steps. callbacks.NonFinite ends a run.
func SkipNonFinite() Transformation { return skipNonFinite{} }

type skipNonFinite struct{}

func (skipNonFinite) Name() string { return "skip_non_finite" }

func (skipNonFinite) Update(s *Step) {
	finite := s.finite()
	if finite == nil {
		return
	}
	skipped := s.Number("skipped", int32(0))
	n := skipped.NodeValue(s.graph)
	s.Set(skipped, graph.Where(finite, n, graph.AddScalar(n, 1)))
	s.Require(finite)
}

func (s *Step) finite() *graph.Node {
	var all []*graph.Node
	for p := range s.Parameters() {
		here := graph.IsFinite(p.Update)
		if !here.Shape().IsScalar() {
			here = graph.LogicalAll(here)
		}
		if p.gate != nil {
			here = graph.LogicalOr(here, graph.LogicalNot(p.gate))
		}
		all = append(all, here)
	}
	if len(all) == 0 {
		return nil
	}
	// The barrier keeps XLA from copying a chain of comparisons into each parameter's update.
	return graph.LogicalAll(graph.OptimizationBarrier(graph.Stack(all, 0)))
}

// LossScale keeps small gradients from underflowing in float16 (Micikevicius et al. 2018). It multiplies the loss
// before differentiation and divides the gradients. If they overflow, it holds the step back and reduces the scale;
// after many good steps it raises it.
//
// It is the first link of the chain. [Optimizer.UpdateGraph] and managed's steps scale the sum of all losses.
//
// Its variables are scale and good, the good steps since the last change.
type LossScale struct {
	// Start is the initial scale. Default 32768, the largest power of two in float16.
	Start float64
	// Factor multiplies or divides the scale, which is at least 1. Default 2.
	Factor float64
	// Every is the number of good steps after which the scale grows. Default 2000.
	Every int
}

func (LossScale) Name() string { return "loss_scale" }

// ScaleLoss returns the loss with its gradient multiplied by the scale of the chain's [LossScale], if any. The
// gradients for [Optimizer.UpdateGraphWithGradients] are those of the returned loss. scope is that of the update.
func (o *Optimizer) ScaleLoss(scope *model.Scope, loss *graph.Node) *graph.Node {
	t, link := o.chain.lossScale()
	if link < 0 {
		return loss
	}
	check(link == 0, "LossScale is link %d of the chain, after %s, which would see scaled gradients: put it first", link+1, o.chain.links()[max(link, 1)-1].Name())
	g := loss.Graph()
	scale := t.scale(newStep(scope, g, loss.DType()).in(model.JoinPath(scopeIn(scope), t.Name()), nil)).NodeValue(g)
	return graph.IdentityWithCustomGradient(loss, func(_, v *graph.Node) *graph.Node {
		return graph.Mul(v, graph.ConvertDType(scale, v.DType()))
	})
}

func (t LossScale) scale(s *Step) *model.Variable {
	start := cmp.Or(t.Start, 32768)
	check(start >= 1 && start <= math.MaxFloat32, "LossScale.Start is %g, expected a number from 1 to float32's largest", start)
	return s.Number("scale", float32(start))
}

// ScalesLoss reports whether the chain has a [LossScale].
func (o *Optimizer) ScalesLoss() bool {
	_, link := o.chain.lossScale()
	return link >= 0
}

func (c Chain) lossScale() (scale LossScale, link int) {
	for i, t := range c.links() {
		if scale, ok := t.(LossScale); ok {
			return scale, i
		}
	}
	return LossScale{}, -1
}

func (c Chain) links() (links []Transformation) {
	for _, t := range c {
		if inner, ok := t.(Chain); ok {
			links = append(links, inner.links()...)
		} else {
			links = append(links, t)
		}
	}
	return links
}

func (t LossScale) Update(s *Step) {
	s.once(t.Name())
	factor, every := cmp.Or(t.Factor, 2), cmp.Or(t.Every, 2000)
	check(factor > 1 && factor <= math.MaxFloat32, "LossScale.Factor is %g, expected a number above 1", factor)
	check(every > 0, "LossScale.Every is %d, expected a positive number of steps", every)
	variable := t.scale(s)
	// managed tries optimizers on a graph without a model, which is not a training graph.
	check(variable.InUseByGraph(s.graph) || !s.model.IsTraining(s.graph), "the gradients were not scaled: put LossScale into the outer chain, and differentiate what ScaleLoss returns")
	scale := variable.NodeValue(s.graph)
	divisor := graph.ConvertDType(scale, s.dtype)
	s.each(func(p *Parameter) *graph.Node { return graph.Div(p.Update, divisor) })
	finite := s.finite()
	if finite == nil {
		return
	}
	good := s.Number("good", int32(0))
	n := graph.AddScalar(good.NodeValue(s.graph), 1)
	due := graph.GreaterOrEqual(n, graph.Scalar(s.graph, n.DType(), float64(every)))
	larger := graph.MulScalar(scale, factor)
	larger = graph.Where(graph.LogicalAnd(due, graph.IsFinite(larger)), larger, scale)
	s.Set(variable, graph.Where(finite, larger, graph.MaxScalar(graph.DivScalar(scale, factor), 1)))
	s.Set(good, graph.Where(graph.LogicalAnd(finite, graph.LogicalNot(due)), n, graph.ZerosLike(n)))
	s.Require(finite)
}
