package flaxlike

import (
	"cmp"

	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/optim"
)

type rule struct {
	rate  float64
	chain []optim.Transformation
}

// epsilon is Keras's; package optim has those of the papers.
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
