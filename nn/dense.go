package nn

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	gomlx "github.com/gomlx/gomlx/ml/nn"
)

const boolean = dtypes.Bool

// Dense computes x·kernel + bias: [batch, …, n] to [batch, …, units].
type Dense struct {
	Units  int
	NoBias bool
	Kernel model.VariableInitializer
	Bias   model.VariableInitializer
}

// Apply has the variables kernel [n, units] and bias [units].
func (d Dense) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(d, scope, x) }

func (d Dense) build(scope *model.Scope, x *graph.Node) *graph.Node {
	floats("Dense", scope, x, 1, "[batch, …, n]")
	atLeastOne("Dense", scope, "Units", d.Units)
	kernel := variable(scope, x, "kernel", d.Kernel, glorotUniform, x.Shape().Dimensions[x.Rank()-1], d.Units)
	var bias *graph.Node
	if !d.NoBias {
		bias = variable(scope, x, "bias", d.Bias, graph.Zeros, d.Units)
	}
	return added(scope, x, gomlx.Dense(x, kernel, bias, compute.DenseLayoutInputOutputs))
}
