package optim

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Policy has the dtypes of a model's parameters, of its layers' arithmetic, and of the outputs that the loss receives.
type Policy struct{ Parameters, Compute, Outputs dtypes.DType }

// MixedBFloat16 computes in bfloat16, with parameters and outputs in float32. It needs no [LossScale].
func MixedBFloat16() Policy { return Policy{dtypes.Float32, dtypes.BFloat16, dtypes.Float32} }

// MixedFloat16 is [MixedBFloat16] with float16. It needs a [LossScale].
func MixedFloat16() Policy { return Policy{dtypes.Float32, dtypes.Float16, dtypes.Float32} }

// String lists the three dtypes.
func (p Policy) String() string {
	return fmt.Sprintf("parameters %s, compute %s, outputs %s", p.Parameters, p.Compute, p.Outputs)
}

// NeedsLossScale reports whether small gradients underflow in the compute dtype.
func (p Policy) NeedsLossScale() bool { return p.Compute == dtypes.Float16 }

// In converts an input or a parameter to the compute dtype if it is floating-point.
func (p Policy) In(x *graph.Node) *graph.Node { return castFloat(x, p.Compute) }

// Out converts a model's output to the loss's dtype.
func (p Policy) Out(x *graph.Node) *graph.Node { return castFloat(x, p.Outputs) }

func castFloat(x *graph.Node, to dtypes.DType) *graph.Node {
	if !x.DType().IsFloat() {
		return x
	}
	return graph.ConvertDType(x, to)
}
