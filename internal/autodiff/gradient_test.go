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
	"github.com/lazo-ml/lazo/xla/ops"
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

// Bodies have constants of their own, so that a gradient by one would lack what passes through them.
func TestGradient_byAConstant(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "constant")
	defer g.Finalize()
	x := graph.Const(g, []float64{1, 2})
	require.NotPanics(t, func() { autodiff.Gradient(graph.ReduceAllSum(graph.Mul(x, x)), x) })
	y := ops.Cond(graph.GreaterThan(graph.ReduceAllSum(x), scalar64(x, 0)),
		func() []node { return []node{graph.Sin(x)} }, func() []node { return []node{x} })[0]
	require.PanicsWithError(t, "autodiff: gradient: by a constant of the graph, which loops and branches build again as their own: the gradient through "+
		"them would be missing: make it a parameter of the graph or a variable, or add 0 times one to it", func() { autodiff.Gradient(graph.ReduceAllSum(y), x) })
}
