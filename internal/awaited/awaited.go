// Package awaited tells a function that builds a step of a state which saved values no step has asked for yet.
package awaited

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Values are what a state awaits, besides the variables that there are.
type Values struct {
	// Shapes are those of the saved values, by the full names of their variables.
	Shapes map[string]shapes.Shape
	// Bring makes the variable of such a value, as one that an optimizer keeps.
	Bring func(name string) *model.Variable
	// Numbers are what links of an optimizer keep for several parameters, by the full names of both: a group of
	// parameters has its own from the first step on that trains one of them.
	Numbers map[string][]string
	// Saved returns the saved value of a scalar for a pack, by its full name, 0 where there is none. It is nil where the
	// state awaits nothing.
	Saved func(name string) int64
	// Equal notes that the graph takes the scalars of a pack to be equal, so that it is built again when they may differ
	// (packs.SetApart). It is nil where the graph has no state, which would build it again.
	Equal func(pack *model.Variable)
	// Open tells that the graph depends on which variables there are: with more of them it is to be built again.
	Open bool
}

// param is the name of a graph's parameter.
const param = "/lazo.awaited"

// Give gives a graph what its state awaits.
func Give(g *graph.Graph, v *Values) { model.SetGraphParam(g, param, v) }

// Of is what the state of a graph awaits; empty where there is no state.
func Of(g *graph.Graph) *Values {
	if v, ok := model.GetGraphParam(g, param); ok {
		return v.(*Values)
	}
	return &Values{}
}
