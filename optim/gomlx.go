package optim

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/ml/context"
)

// The GoMLX names that this package shows, as in package managed.
type (
	// Vars is GoMLX's context: the named variables of a model.
	Vars = context.Context
	// Variable is one of them.
	Variable = context.Variable
	// Graph is a program being built.
	Graph = graph.Graph
	// Node is a value in a graph.
	Node = graph.Node
	// Shape is a node's or a variable's type of number and dimensions.
	Shape = shapes.Shape
	// DType is a type of number.
	DType = dtypes.DType
)
