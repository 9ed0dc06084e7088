package managed

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

// Every GoMLX name that this package shows is an alias here, because GoMLX renames most of them in a coming version:
// then this is the file that changes.
type (
	// Vars is GoMLX's context: the named variables of a model, in scopes. Layers take it as their first argument.
	Vars = context.Context
	// Node is a value in a graph.
	Node = graph.Node
	// Tensor is a value on the host or a device.
	Tensor = tensors.Tensor
	// Shape is the dtype and the dimensions of a value.
	Shape = shapes.Shape
	// Optimizer is a rule to update the parameters from their gradients; GoMLX's package optimizers has them.
	Optimizer = optimizers.Interface
	// DType is a type of number.
	DType = dtypes.DType

	variable = context.Variable
)

// gradientOptimizer is an optimizer that takes gradients; all of GoMLX's do. The other way in, by the loss, would let
// GoMLX differentiate, past internal/autodiff.
type gradientOptimizer interface {
	UpdateGraphWithGradients(vars *Vars, gradients []*Node, lossDType dtypes.DType)
}
