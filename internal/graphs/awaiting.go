package graphs

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Awaiting is what a state tells a function that builds one of its steps, beside the variables that there are.
type Awaiting struct {
	// Shapes are those of saved values that no step has asked for yet, by the full names of their variables.
	Shapes map[string]shapes.Shape
	// Bring makes the variable of such a value, as one that an optimizer keeps.
	Bring func(name string) *model.Variable
	// Open tells that the graph depends on which variables there are: with more of them it is to be built again.
	Open bool
}

// awaiting is the name of a graph's parameter.
const awaiting = "/lazo.awaiting"

// Await gives a graph what its state awaits.
func Await(g *graph.Graph, a *Awaiting) { model.SetGraphParam(g, awaiting, a) }

// Awaited is what the state of a graph awaits; empty where there is no state.
func Awaited(g *graph.Graph) *Awaiting {
	if a, ok := model.GetGraphParam(g, awaiting); ok {
		return a.(*Awaiting)
	}
	return &Awaiting{}
}
