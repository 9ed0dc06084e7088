package managed

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Every GoMLX name that this package shows is an alias here: a name that GoMLX changes is changed in this file.
type (
	// Scope is a place among the named variables of a model, as a directory among files. Layers take it as their first
	// argument.
	Scope = model.Scope
	// Graph is a program being built.
	Graph = graph.Graph
	// Node is a value in a graph.
	Node = graph.Node
	// Tensor is a value on the host or a device.
	Tensor = tensors.Tensor
	// Shape is the dtype and the dimensions of a value.
	Shape = shapes.Shape
	// DType is a type of number.
	DType = dtypes.DType

	variable = model.Variable
)
