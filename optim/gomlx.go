package optim

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// The GoMLX names that this package shows, as in package managed.
type (
	// Scope is GoMLX's: the named variables of a model, seen from a place among them.
	Scope = model.Scope
	// Variable is one of them.
	Variable = model.Variable
	// Graph is a program being built.
	Graph = graph.Graph
	// Node is a value in a graph.
	Node = graph.Node
	// Shape is a node's or a variable's type of number and dimensions.
	Shape = shapes.Shape
	// DType is a type of number.
	DType = dtypes.DType
)
