package flaxlike

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/ml/layers/regularizer"

	"github.com/lazo-ml/lazo/managed"
)

// L2 adds a penalty on the kernels of layers, which are run one behind the other: the rate times the sum of their
// squares. It is a part of the loss, in training and in tests, and logged as aux_loss with the other penalties.
func L2(rate float64, layers ...Layer) Layer {
	return made("L2", l2{rate, sequential{slices.Clone(layers)}})
}

// L1 is [L2] with absolute values in place of squares.
func L1(rate float64, layers ...Layer) Layer {
	return made("L1", l1{rate, sequential{slices.Clone(layers)}})
}

type l1 struct {
	Rate float64
	sequential
}

type l2 struct {
	Rate float64
	sequential
}

func (p l1) holding(in []Layer) (Layer, error) { return l1{p.Rate, sequential{in}}, nil }
func (p l2) holding(in []Layer) (Layer, error) { return l2{p.Rate, sequential{in}}, nil }

func (p l1) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return p.sequential.Apply(penalized(scope, "L1", regularizer.ParamL1, p.Rate), x)
}

func (p l2) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return p.sequential.Apply(penalized(scope, "L2", regularizer.ParamL2, p.Rate), x)
}

// penalized is the scope with a penalty, which package nn's kernels below it take.
func penalized(scope *managed.Scope, layer, param string, rate float64) *managed.Scope {
	if !(rate >= 0 && rate < 1e30) { // also NaN
		panic(fmt.Errorf("%s in %s: the rate is %v, expected a finite number of at least 0", layer, scope.Scope(), rate))
	}
	scope.SetParam(param, rate)
	return scope
}
