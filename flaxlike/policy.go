package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/optim"
)

// WithPolicy sets mixed precision: optim.MixedBFloat16() or optim.MixedFloat16(). Parameters, labels, losses, metrics,
// predictions and normalization stay in float32.
//
// With float16 the losses are scaled by the [optim.LossScale] of the optimizer, or by a default one. A step whose
// gradients overflow changes only the scale.
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
	scaled, err := o.Scaled()
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w, or optim.MixedBFloat16(), which needs no scale", *s.policy, graphs.Inner(err))
	}
	return scaled, nil
}

func uncast(field *graph.Node) *graph.Node {
	if field.Type() == graph.NodeTypeConvertDType {
		return field.Inputs()[0]
	}
	return field
}
