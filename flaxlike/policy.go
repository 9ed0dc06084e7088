package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// WithPolicy has the model calculate with mixed precision: optim.MixedBFloat16() or optim.MixedFloat16(). Parameters,
// labels, losses, metrics and what Predict gives stay in float32; normalisations calculate in it. See
// managed.WithPolicy.
//
// With float16 the losses are scaled, so that no gradient vanishes: by the [optim.LossScale] that the optimizer begins
// with, and by one with its defaults if it has none. A step with gradients that overflow changes nothing but the scale.
// A loss that the network reports by managed.AddLoss is to be scaled by the network (optim.LossScale.Loss);
// [WithInnerLosses] is refused.
func WithPolicy(p optim.Policy) Option {
	return func(s *settings) error {
		s.policy = &p
		return nil
	}
}

// scaled gives the optimizer that a policy needs.
func (s *settings) scaled(o *optim.Optimizer) (*optim.Optimizer, error) {
	if s.policy == nil || !s.policy.NeedsLossScale() {
		return o, nil
	}
	if s.innerLosses {
		return nil, fmt.Errorf("policy %s: the losses that the network reports itself would not be scaled, expected no WithInnerLosses: "+
			"give WithLoss the loss, or take optim.MixedBFloat16(), which needs no scale", *s.policy)
	}
	scaled, scale, err := o.Scaled()
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w, or optim.MixedBFloat16(), which needs no scale", *s.policy, graphs.Inner(err))
	}
	s.scale = &scale
	return scaled, nil
}

// scaleLoss gives a loss with a scaled gradient.
func (s *settings) scaleLoss(b *managed.Builder, v *graph.Node) *graph.Node {
	if s.scale == nil {
		return v
	}
	return s.scale.Loss(b.Scope(), v)
}

// scalePenalties scales what a model and GoMLX's regularizers have left for a trainer, which managed takes in behind
// the step's function.
func (s *settings) scalePenalties(b *managed.Builder) {
	if s.scale == nil {
		return
	}
	for _, key := range []string{train.TrainerMainLossGraphParamKey, train.TrainerRegularizationLossGraphParamKey} {
		path := model.JoinPath(train.TrainerAbsoluteScope, key)
		if v, ok := model.GetGraphParam(b.Graph(), path); ok {
			model.SetGraphParam(b.Graph(), path, s.scale.Loss(b.Scope(), v.(*graph.Node)))
		}
	}
}

// uncast is a field of the batch as it came in: under a policy, layers see it in fewer bits.
func uncast(field *graph.Node) *graph.Node {
	if field.Type() == graph.NodeTypeConvertDType {
		return field.Inputs()[0]
	}
	return field
}
