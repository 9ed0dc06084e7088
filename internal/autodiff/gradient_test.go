package autodiff_test

import (
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

func shape32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func TestGradient(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(x, y, z node) (loss node, wrt []node)
		want []float32
	}{
		{"both operands", func(x, y, _ node) (node, []node) { return graph.DotProduct(x, y), []node{x, y} }, []float32{3, 4, 1, 2}},
		{"one operand", func(x, y, _ node) (node, []node) { return graph.DotProduct(x, y), []node{y} }, []float32{1, 2}},
		{"the same operand twice", func(x, _, _ node) (node, []node) { return graph.DotProduct(x, x), []node{x, x} }, []float32{2, 4, 2, 4}},
		{"an input that the loss does not use", func(x, y, z node) (node, []node) { return graph.DotProduct(x, y), []node{z} }, []float32{0, 0}},
		{"an input behind StopGradient", func(x, y, _ node) (node, []node) {
			return graph.DotProduct(graph.StopGradient(x), y), []node{x, y}
		}, []float32{0, 0, 1, 2}},
		{"an inner node and its input", func(x, y, _ node) (node, []node) {
			s := graph.Mul(x, y)
			return graph.DotProduct(s, y), []node{s, x}
		}, []float32{3, 4, 9, 16}},
		{"through an inner node that is selected", func(x, y, _ node) (node, []node) {
			s := graph.DotProduct(x, y)
			return graph.Mul(s, s), []node{s, y}
		}, []float32{22, 22, 44}},
		{"a custom gradient that differentiates", func(x, y, z node) (node, []node) {
			s := graph.IdentityWithCustomGradient(x, func(_, v node) node {
				return graph.Mul(v, autodiff.Gradient(graph.DotProduct(y, z), z)[0])
			})
			return graph.DotProduct(s, y), []node{x}
		}, []float32{9, 16}},
		{"a custom gradient that differentiates by graph.Gradient", func(x, y, z node) (node, []node) {
			inner := graph.DotProduct(y, z) // created before, and not used by the outer gradient
			s := graph.IdentityWithCustomGradient(x, func(_, v node) node {
				return graph.Mul(v, graph.Gradient(inner, z)[0])
			})
			return graph.DotProduct(s, y), []node{x}
		}, []float32{9, 16}},
		{"a block that is computed again", func(x, y, _ node) (node, []node) {
			c := x.Checkpoint()
			s := graph.Max(graph.Mul(graph.Mul(c, c), y), c).StopCheckpoint()
			return graph.DotProduct(s, y), []node{x, y}
		}, []float32{18, 64, 2 * 3, 2 * 16}},
		{"a second derivative", func(x, y, _ node) (node, []node) {
			first := autodiff.Gradient(graph.DotProduct(x, graph.Mul(x, x)), x)[0]
			return graph.DotProduct(first, y), []node{x}
		}, []float32{18, 48}},
	} {
		for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
			t.Run(c.name+"/"+backend.Name(), func(t *testing.T) {
				g := graph.NewGraph(backend, "gradient")
				defer g.Finalize()
				loss, wrt := c.f(graph.Const(g, []float32{1, 2}), graph.Const(g, []float32{3, 4}), graph.Const(g, []float32{5, 6}))
				g.Compile(autodiff.Gradient(loss, wrt...)...)
				var got []float32
				for _, r := range g.Run() {
					got = append(got, tensors.MustCopyFlatData[float32](r)...)
				}
				require.Equal(t, c.want, got)
			})
		}
	}
}

// TestR03_gradientInACustomGradient: a custom gradient calls graph.Gradient by a node that the outer gradient does not
// ask for. dw was 3: nodes outside of the outer call's selection were left out of the inner one too.
func TestR03_gradientInACustomGradient(t *testing.T) {
	for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
		g := graph.NewGraph(backend, "nested")
		defer g.Finalize()
		w, x := graph.Const(g, float32(2)), graph.Const(g, float32(3))
		y := graph.Mul(w, x)
		h := graph.IdentityWithCustomGradient(y, func(_, v node) node {
			return graph.Add(v, graph.Gradient(graph.ReduceAllSum(y), x)[0])
		})
		g.Compile(autodiff.Gradient(h, w)...)
		require.Equal(t, float32((1+2)*3), g.Run()[0].Value(), "%s: (v + w)·x", backend.Name())
		t.Logf("%s: dw = 9", backend.Name())
	}
}

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
			{"from behind it", func(x, _ node) (node, node) { y := branch(x); return graph.Mul(y, y), y }, false, 18},
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

func TestGradientPanicsAsGraphGradientDoes(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "panics")
	defer g.Finalize()
	other := graph.NewGraph(plugintest.CPU(t), "other")
	defer other.Finalize()
	x := graph.Parameter(g, "x", shape32(2))
	for _, c := range []struct {
		name string
		f    func()
		want string
	}{
		{"not a scalar", func() { autodiff.Gradient(x, x) }, "only gradients of a non-complex scalar"},
		{"a node of another graph", func() { autodiff.Gradient(graph.ReduceAllSum(x), graph.Parameter(other, "x", shape32(2))) }, "different graphs"},
		{"no node", func() { autodiff.Gradient(graph.ReduceAllSum(x), nil) }, "nil"},
		{"no loss", func() { autodiff.Gradient(nil, x) }, "nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, graphs.Catch(c.f), c.want)
		})
	}
}

// TestGradientsInParallel: graphs may be differentiated at the same time.
//
//lazo:race
func TestGradientsInParallel(t *testing.T) {
	backend := plugintest.Go(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 25 {
				g := graph.NewGraph(backend, "parallel")
				x, y := graph.Const(g, []float32{1, 2}), graph.Const(g, []float32{3, 4})
				wrt, want := x, []float32{3, 4}
				if i%2 == 1 {
					wrt, want = y, []float32{1, 2}
				}
				g.Compile(autodiff.Gradient(graph.DotProduct(x, y), wrt)...)
				if got := g.Run()[0].Value(); !equal(want, got) {
					t.Errorf("got %v, want %v", got, want)
				}
				g.Finalize()
			}
		})
	}
	group.Wait()
}

func equal(want []float32, got any) bool {
	values, ok := got.([]float32)
	return ok && len(values) == 2 && values[0] == want[0] && values[1] == want[1]
}
