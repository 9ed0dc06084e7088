// Package awaited passes saved values that no step has asked for yet to a step's builder.
package awaited

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

type Values struct {
	// Shapes has the saved values' shapes by their variables' full names.
	Shapes map[string]shapes.Shape
	Bring  func(name string) *model.Variable
	// Numbers has what an optimizer's links keep for several parameters, by the full names of both. A group of
	// parameters has its own after the first step that trains one of them.
	Numbers map[string][]string
	// Saved returns a pack's saved scalar by its full name, or 0. It is nil if nothing is awaited.
	Saved func(name string) int64
	// Equal records that the graph assumes equal scalars in a pack, so that it is built again when they may differ
	// (packs.SetApart). It is nil without a state.
	Equal func(pack *model.Variable)
	// Open: the graph depends on which variables exist, and is built again when there are more.
	Open bool
}

const param = "/lazo.awaited"

func Give(g *graph.Graph, v *Values) { model.SetGraphParam(g, param, v) }

func Of(g *graph.Graph) *Values {
	if v, ok := model.GetGraphParam(g, param); ok {
		return v.(*Values)
	}
	return &Values{}
}
