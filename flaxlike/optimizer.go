package flaxlike

import (
	"cmp"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// rule is an optimizer by name, with the rate that Keras gives it.
type rule struct {
	rate  float64
	chain []optim.Transformation
}

var optimizersByName = map[string]rule{
	"sgd":       {rate: 0.01},
	"momentum":  {0.01, []optim.Transformation{optim.Momentum(0.9)}},
	"nesterov":  {0.01, []optim.Transformation{optim.Nesterov(0.9)}},
	"adam":      {0.001, []optim.Transformation{optim.Adam{}}},
	"adamw":     {0.001, []optim.Transformation{optim.Adam{}, optim.WeightDecay{Rate: 0.004, Match: optim.RankFrom(2)}}},
	"adamax":    {0.001, []optim.Transformation{optim.Adamax{}}},
	"rmsprop":   {0.001, []optim.Transformation{optim.RMSProp{}}},
	"adagrad":   {0.001, []optim.Transformation{optim.Adagrad{}}},
	"adadelta":  {0.001, []optim.Transformation{optim.Adadelta{Decay: 0.95, Epsilon: 1e-7}}},
	"nadam":     {0.001, []optim.Transformation{optim.Nadam{}}},
	"lion":      {0.001, []optim.Transformation{optim.Lion{}}},
	"lamb":      {0.001, []optim.Transformation{optim.LAMB{}}},
	"adafactor": {0.001, []optim.Transformation{optim.Adafactor{}}},
}

// optimizerByName gives an optimizer; a rate of 0 stands for its own.
func optimizerByName(name string, rate float64) (managed.Optimizer, error) {
	r, err := find("optimizer", name, optimizersByName)
	if err != nil {
		return nil, err
	}
	rate = cmp.Or(rate, r.rate)
	return optim.New(rate, r.chain...), nil
}
