package flaxlike

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/optim"
)

// WithOptimizer sets the optimizer: of optim.New or optim.GoMLX, or a name: sgd, momentum, nesterov, adam (the
// default), adamw, adamax, rmsprop, adagrad, adadelta, nadam, lion, lamb, adafactor. A name has Keras's default
// learning rate ([WithLearningRate]).
func WithOptimizer(optimizer any) Option {
	return func(s *settings) (err error) {
		switch o := optimizer.(type) {
		case string:
			s.optimizerName = o
			_, err = optimizerByName(o, 0)
		case *optim.Optimizer:
			if s.optimizer = o; o == nil {
				err = errors.New("the optimizer is nil")
			}
		case nil:
			err = errors.New("the optimizer is nil")
		default:
			err = fmt.Errorf("WithOptimizer was given a %T, expected a name, as \"adam\", or an optimizer, as optim.New or optim.GoMLX makes it", o)
		}
		return err
	}
}

// WithLearningRate sets the learning rate of an optimizer by name.
func WithLearningRate(rate float64) Option {
	return func(s *settings) error {
		if !(rate > 0) || math.IsInf(rate, 0) {
			return fmt.Errorf("the learning rate %v is %w: expected a positive number", rate, ErrValue)
		}
		s.rate = rate
		return nil
	}
}

// WithPolicy sets mixed precision: optim.MixedBFloat16() or optim.MixedFloat16(). Parameters, labels, losses, metrics,
// predictions and normalization stay in float32.
//
// With float16 the optimizer's [optim.LossScale] scales the losses, or a default one. A step whose gradients overflow
// changes only the scale.
func WithPolicy(p optim.Policy) Option {
	return func(s *settings) error {
		s.policy = &p
		return nil
	}
}

type rule struct {
	rate  float64
	chain []optim.Transformation
}

// epsilon is Keras's; package optim has the papers'.
const epsilon = 1e-7

var optimizersByName = map[string]rule{
	"sgd":       {rate: 0.01},
	"momentum":  {0.01, []optim.Transformation{optim.Momentum{Decay: 0.9}}},
	"nesterov":  {0.01, []optim.Transformation{optim.Momentum{Decay: 0.9, Nesterov: true}}},
	"adam":      {0.001, []optim.Transformation{optim.Adam{Epsilon: epsilon}}},
	"adamw":     {0.001, []optim.Transformation{optim.Adam{Epsilon: epsilon}, optim.WeightDecay{Rate: 0.004}}},
	"adamax":    {0.001, []optim.Transformation{optim.Adamax{Epsilon: epsilon}}},
	"rmsprop":   {0.001, []optim.Transformation{optim.RMSProp{Epsilon: epsilon}}},
	"adagrad":   {0.001, []optim.Transformation{optim.Adagrad{}}},
	"adadelta":  {0.001, []optim.Transformation{optim.Adadelta{Decay: 0.95, Epsilon: epsilon}}},
	"nadam":     {0.001, []optim.Transformation{optim.Nadam{Epsilon: epsilon}}},
	"lion":      {0.001, []optim.Transformation{optim.Lion{}}},
	"lamb":      {0.001, []optim.Transformation{optim.LAMB{Epsilon: epsilon}}},
	"adafactor": {0.001, []optim.Transformation{optim.Adafactor{}}},
}

func optimizerByName(name string, rate float64) (*optim.Optimizer, error) {
	r, err := names.Find("optimizer", name, optimizersByName)
	if err != nil {
		return nil, err
	}
	return optim.New(cmp.Or(rate, r.rate), r.chain...), nil
}

func rateByName(name string, rate float64) (float64, error) {
	r, err := names.Find("optimizer", name, optimizersByName)
	return cmp.Or(decimal(rate), r.rate), err
}

// decimal returns 0.1 for 0.10000000149011612, the same float32.
func decimal(v float64) float64 {
	if float64(float32(v)) != v {
		return v
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64)
	if err != nil {
		return v
	}
	return short
}

func (s *settings) optimizerOf() (*optim.Optimizer, error) {
	if s.optimizer == nil {
		s.optimizerName = cmp.Or(s.optimizerName, "adam")
		return optimizerByName(s.optimizerName, s.rate)
	}
	if s.optimizerName != "" || s.rate != 0 {
		return nil, errors.New("WithOptimizer: an optimizer brings its own rule and rate: leave its name and WithLearningRate out")
	}
	return s.optimizer, nil
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
