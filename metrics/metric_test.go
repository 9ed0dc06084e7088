package metrics_test

import (
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
)

func TestB90_whatWasNotReducedIsAnError(t *testing.T) {
	r := plugintest.Go(t)
	c := every()
	n := len(c.Accumulators())
	devices := func(g *graph.Graph) []*graph.Node { // accumulators of two devices, side by side
		var all []*graph.Node
		for _, a := range c.Accumulators() {
			all = append(all, graph.FillScalar(g, shapes.Make(a.Shape.DType, append([]int{2}, a.Shape.Dimensions...)...), a.Initial))
		}
		return all
	}
	refused := 0
	for name, f := range map[string]func(g *graph.Graph){
		"compute": func(g *graph.Graph) { c.Compute(devices(g)) },
		"merge":   func(g *graph.Graph) { c.Merge(c.Initial(g), devices(g)) },
		"reduce":  func(g *graph.Graph) { c.Reduce(devices(g), c.Initial(g)) },
	} {
		_, err := graph.CallOnce(r, func(g *graph.Graph) *graph.Node { f(g); return graph.Const(g, 1) })
		require.ErrorContains(t, err, `accumulator "mean/total" has shape (Float64)[2], expected (Float64); those of several devices need Reduce first`, name)
		refused++
	}
	for _, e := range c.Collection {
		m := e.Metric
		_, err := graph.CallOnce(r, func(g *graph.Graph) *graph.Node {
			var two []*graph.Node
			for _, a := range metrics.Initial(m, g) {
				two = append(two, graph.Stack([]*graph.Node{a, a}, 0))
			}
			m.Merge(two, two)
			return two[0]
		})
		require.ErrorContains(t, err, "need Reduce first", e.Name)
		refused++
	}
	_, err := graph.CallOnce(r, func(g *graph.Graph) *graph.Node { c.Compute(c.Initial(g)[1:]); return graph.Const(g, 1) })
	require.ErrorContains(t, err, "accumulators given, expected")
	t.Logf("B90: %d of %d refused, %d accumulators", refused, 3+len(c.Collection), n)
}
