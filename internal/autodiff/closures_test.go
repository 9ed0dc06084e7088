package autodiff_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// TestGradientRefusesClosures: GoMLX returns 0 for captures of a branch or a loop.
func TestGradientRefusesClosures(t *testing.T) {
	branch := func(x node) node { // x·x, or x
		g := x.Graph()
		return graph.If(graph.Const(g, true),
			graph.NewClosure(g, func(*graph.Graph) []node { return []node{graph.Mul(x, x)} }),
			graph.NewClosure(g, func(*graph.Graph) []node { return []node{x} }))[0]
	}
	loop := func(x node) (times, sum node) { // 3, 3·x
		g := x.Graph()
		state := func(g *graph.Graph) (i, sum node) {
			return graph.Parameter(g, "i", shapes.Make(dtypes.Float32)), graph.Parameter(g, "sum", shapes.Make(dtypes.Float32))
		}
		results := graph.While(
			graph.NewClosure(g, func(g *graph.Graph) []node {
				i, _ := state(g)
				return []node{graph.LessThan(i, graph.Const(g, float32(3)))}
			}),
			graph.NewClosure(g, func(g *graph.Graph) []node {
				i, sum := state(g)
				return []node{graph.Add(i, graph.Const(g, float32(1))), graph.Add(sum, x)} // no OnePlus: GoMLX would create its 1 in main
			}), graph.Const(g, float32(0)), graph.Const(g, float32(0)))
		return results[0], results[1]
	}
	for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
		for _, c := range []struct {
			name    string
			f       func(x, z node) (loss, wrt node)
			refused bool
			want    float32 // of graph.Gradient where it is refused
		}{
			{"branch", func(x, _ node) (node, node) { return graph.Mul(x, branch(x)), x }, true, 9},            // 27
			{"loop", func(x, _ node) (node, node) { _, sum := loop(x); return graph.Mul(x, sum), x }, true, 9}, // 18
			{"what is no gradient of it", func(x, _ node) (node, node) { return graph.Mul(x, graph.StopGradient(branch(x))), x }, false, 9},
			{"its whole numbers", func(x, _ node) (node, node) {
				times, _ := loop(x)
				return graph.Mul(x, graph.ConvertDType(graph.ConvertDType(times, dtypes.Int32), dtypes.Float32)), x
			}, false, 3},
			{"from after it", func(x, _ node) (node, node) { y := branch(x); return graph.Mul(y, y), y }, false, 18},
			{"of another one", func(x, z node) (node, node) { branch(x); return graph.Mul(x, z), z }, false, 3},
		} {
			t.Run(c.name+"/"+backend.Name(), func(t *testing.T) {
				g := graph.NewGraph(backend, "closure")
				defer g.Finalize()
				loss, wrt := c.f(graph.Const(g, float32(3)), graph.Const(g, float32(5)))
				gradient := autodiff.Gradient
				if c.refused {
					require.ErrorContains(t, graphs.Catch(func() { autodiff.Gradient(loss, wrt) }), "autodiff: gradient: the loss depends on an If or a While")
					gradient = graph.Gradient
				}
				g.Compile(gradient(loss, wrt)...)
				require.Equal(t, c.want, g.Run()[0].Value())
			})
		}
	}
}
