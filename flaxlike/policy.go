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

// WithPolicy sets mixed precision: optim.MixedBFloat16() or optim.MixedFloat16(). Parameters, labels, losses, metrics,
// predictions and normalization stay in float32. See managed.WithPolicy.
//
// With float16 the [optim.LossScale] at the optimizer's beginning, or a default one, scales the losses. A step with
// overflowing gradients changes only the scale. The network must scale losses of managed.AddLoss by
// optim.LossScale.Loss. [WithInnerLosses] is an error.
func WithPolicy(p optim.Policy) Option {
	return func(s *settings) error {
		s.policy = &p
		return nil
	}
}

func (s *settings) scaled(o *optim.Optimizer) (*optim.Optimizer, error) {
	if s.policy == nil || !s.policy.NeedsLossScale() {
		return o, nil
	}
	if s.innerLosses {
		return nil, fmt.Errorf("policy %s: the losses that the network reports itself would not be scaled, expected no WithInnerLosses: "+
			"give WithLoss the loss, or use optim.MixedBFloat16(), which needs no scale", *s.policy)
	}
	scaled, scale, err := o.Scaled()
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w, or optim.MixedBFloat16(), which needs no scale", *s.policy, graphs.Inner(err))
	}
	s.scale = &scale
	return scaled, nil
}

func (s *settings) scaleLoss(b *managed.Builder, v *graph.Node) *graph.Node {
	if s.scale == nil {
		return v
	}
	return s.scale.Loss(b.Scope(), v)
}

// scalePenalties scales penalties that managed adds after the step's function.
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

func uncast(field *graph.Node) *graph.Node {
	if field.Type() == graph.NodeTypeConvertDType {
		return field.Inputs()[0]
	}
	return field
}
