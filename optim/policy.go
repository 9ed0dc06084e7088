package optim

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Policy says in which types of numbers a model works: what its parameters are kept in, what layers calculate in, and
// what they give to the loss. It is a value to be asked; it changes nothing by itself. The optimizer's own arithmetic
// is in float32 whatever it says.
type Policy struct{ Parameters, Compute, Outputs dtypes.DType }

// MixedBFloat16 calculates in bfloat16; parameters and outputs stay in float32. It needs no [LossScale].
func MixedBFloat16() Policy { return Policy{dtypes.Float32, dtypes.BFloat16, dtypes.Float32} }

// MixedFloat16 calculates in float16; parameters and outputs stay in float32. It needs a [LossScale]; without one
// managed.New logs a warning.
func MixedFloat16() Policy { return Policy{dtypes.Float32, dtypes.Float16, dtypes.Float32} }

// String is "parameters Float32, compute BFloat16, outputs Float32".
func (p Policy) String() string {
	return fmt.Sprintf("parameters %s, compute %s, outputs %s", p.Parameters, p.Compute, p.Outputs)
}

// NeedsLossScale tells whether small gradients vanish in what layers calculate in.
func (p Policy) NeedsLossScale() bool { return p.Compute == dtypes.Float16 }

// In converts a model's input, or a parameter, to what layers calculate in; what is no floating-point number, as labels
// and tokens are, stays.
func (p Policy) In(x *graph.Node) *graph.Node { return castFloat(x, p.Compute) }

// Out converts a model's output to what the loss is calculated in.
func (p Policy) Out(x *graph.Node) *graph.Node { return castFloat(x, p.Outputs) }

func castFloat(x *graph.Node, to dtypes.DType) *graph.Node {
	if !x.DType().IsFloat() {
		return x
	}
	return graph.ConvertDType(x, to)
}
