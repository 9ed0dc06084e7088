package nn

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	gomlx "github.com/gomlx/gomlx/ml/nn"
)

const boolean = dtypes.Bool

// Dense is a product with a kernel [n, units], and a bias: [batch, …, n] to [batch, …, units].
type Dense struct {
	Units  int
	NoBias bool
	Kernel Initializer // GlorotUniform if nil
	Bias   Initializer // Zeros if nil
}

// Apply has the variables kernel [n, units] and bias [units].
func (d Dense) Apply(scope *Scope, x *Node) *Node { return apply(d, scope, x) }

func (d Dense) build(scope *Scope, x *Node) *Node {
	floats("Dense", scope, x, 1, "[batch, …, n]")
	atLeastOne("Dense", scope, "Units", d.Units)
	kernel := variable(scope, x, "kernel", d.Kernel, GlorotUniform, x.Shape().Dimensions[x.Rank()-1], d.Units)
	var bias *Node
	if !d.NoBias {
		bias = variable(scope, x, "bias", d.Bias, Zeros, d.Units)
	}
	return gomlx.Dense(x, kernel, bias, compute.DenseLayoutInputOutputs)
}
