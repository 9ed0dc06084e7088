package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// graphOf returns a graph with the input x of a type, and the types of its values after the rewriting.
func graphOf(t *testing.T, kind int32, add func(g message)) (message, map[string]int64, error) {
	m, err := decode([]byte{7<<3 | 2, 0})
	require.NoError(t, err)
	g := m.mutable("graph")
	in := g.add("input")
	in.set("name", "x")
	in.mutable("type").mutable("tensor_type").set("elem_type", kind)
	add(g)
	r := rewriter{t.Context(), map[string]message{}, map[string]bool{}, map[string]int64{}}
	err = r.graph(g)
	return g, r.types, err
}

func operatorsOf(g message) (all []string) {
	for _, node := range g.list("node") {
		all = append(all, node.text("op_type"))
	}
	return all
}

// An operator that loses too much in 16 bits is computed in 32, between conversions; its result keeps name and type.
func TestRewrite_widens(t *testing.T) {
	for kind, want := range map[int32][]string{single: {"Gelu"}, half: {"Gelu", "Cast", "Cast"}, brain: {"Gelu", "Cast", "Cast"}} {
		g, types, err := graphOf(t, kind, func(g message) { g.addNode("Gelu", "y", "x") })
		require.NoError(t, err)
		require.ElementsMatch(t, want, operatorsOf(g))
		require.EqualValues(t, kind, types["y"])
		outputs := map[string]bool{}
		for _, name := range g.list("node") {
			outputs[name.texts("output")[0]] = true
		}
		require.True(t, outputs["y"])
		require.Len(t, outputs, len(want))
	}
}

// Without a gradient of GoMLX, Identity is two operators of the same elements.
func TestRewrite_identity(t *testing.T) {
	g, types, err := graphOf(t, single, func(g message) { g.addNode("Identity", "y", "x"); g.addNode("Shape", "s", "y") })
	require.NoError(t, err)
	require.NotContains(t, operatorsOf(g), "Identity")
	require.Subset(t, operatorsOf(g), []string{"Squeeze", "Unsqueeze", "Shape"})
	require.EqualValues(t, int64s, types["s"])
	_, _, err = graphOf(t, int64s, func(g message) { g.addNode("Gelu", "y", "x") })
	require.ErrorContains(t, err, `its input "x" is of Int64, expected floating-point numbers`)
}
