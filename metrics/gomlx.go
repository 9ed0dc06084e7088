package metrics

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Every GoMLX name that this package shows is an alias here: see managed/gomlx.go.
type (
	// Node is a value in a graph.
	Node = graph.Node
	// Graph is what nodes are built in.
	Graph = graph.Graph
	// Shape is the type of a node's numbers and its dimensions.
	Shape = shapes.Shape
)

// dtype is the type of all accumulators; [Metric] says why.
const dtype = dtypes.Float64
