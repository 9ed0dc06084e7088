package autodiff

import (
	"maps"
	"reflect"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
)

func shapesOf(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

// TestAttributes fails if GoMLX changes a field that the rules read.
func TestAttributes(t *testing.T) {
	g := graph.NewGraph(cpu(t), "attributes")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapesOf(4, 6, 6, 2))

	a := attributesOf(graph.DotGeneral(x, []int{1, 2}, []int{0}, x, []int{2, 1}, []int{0}))
	require.Equal(t, []int{1, 2}, a.ints("lhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("lhsBatchAxes"))
	require.Equal(t, []int{2, 1}, a.ints("rhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("rhsBatchAxes"))

	kernel := graph.Parameter(g, "kernel", shapesOf(3, 3, 1, 2))
	axes := backends.ConvolveAxesConfig{
		InputBatch: 0, InputChannels: 3, InputSpatial: []int{1, 2},
		KernelInputChannels: 2, KernelOutputChannels: 3, KernelSpatial: []int{0, 1},
		OutputBatch: 3, OutputChannels: 0, OutputSpatial: []int{2, 1},
	}
	c := convOf(graph.ConvGeneral(x, kernel, axes, []int{1, 2}, [][2]int{{3, 4}, {5, 6}}, []int{1, 3}, []int{2, 1}, 2, 1))
	require.Equal(t, conv{
		axes: axes, strides: []int{1, 2}, inputDilations: []int{1, 3}, kernelDilations: []int{2, 1},
		paddings: [][2]int{{3, 4}, {5, 6}}, channelGroups: 2, batchGroups: 1,
	}, c)
	c = convOf(graph.ConvGeneral(x, kernel, axes, nil, nil, nil, nil, 2, 1))
	require.Equal(t, conv{
		axes: axes, strides: []int{1, 1}, inputDilations: []int{1, 1}, kernelDilations: []int{1, 1},
		paddings: [][2]int{{}, {}}, channelGroups: 2, batchGroups: 1,
	}, c)

	a = attributesOf(graph.MaxPool(x).Window(3).Strides(2).PadSame().Done())
	require.Equal(t, int(backends.ReduceOpMax), a.int("reductionType"))
	require.Equal(t, []int{1, 3, 3, 1}, a.ints("windowDimensions"))
	require.Equal(t, []int{1, 2, 2, 1}, a.ints("strides"))
	require.Equal(t, [][2]int{{}, {1, 1}, {1, 1}, {}}, a.pairs("paddings"))
	require.Nil(t, a.ints("baseDilations"))
	require.Nil(t, a.ints("windowDilations"))

	require.Equal(t, []int{1, 2}, attributesOf(graph.ReduceMax(x, 2, 1)).ints("axes"))
	require.Equal(t, []int{3}, attributesOf(graph.ReduceMin(x, -1)).ints("axes"))
}

func TestAttributesThatAreNotThere(t *testing.T) {
	g := graph.NewGraph(cpu(t), "attributes")
	defer g.Finalize()
	dot := graph.DotGeneral(graph.Parameter(g, "x", shapesOf(2)), nil, nil, graph.Parameter(g, "y", shapesOf(2)), nil, nil)
	for name, read := range map[string]func(attributes){
		"missing":             func(a attributes) { a.ints("axes") },
		"int, not a slice":    func(a attributes) { a.int("lhsBatchAxes") },
		"pairs, not of ints":  func(a attributes) { a.pairs("lhsBatchAxes") },
		"a node, not a slice": func(a attributes) { a.ints("lhs") },
		"a struct":            func(a attributes) { a.sub("lhs") },
	} {
		t.Run(name, func(t *testing.T) {
			err := graphs.Catch(func() { read(attributesOf(dot)) })
			require.ErrorContains(t, err, "of GoMLX's DotGeneral node: expected")
			require.ErrorContains(t, err, "this is not GoMLX v0.26.0")
		})
	}
}

func TestInstallReplacesOnce(t *testing.T) {
	Install()
	before := graph.VJPRegistration
	defer func() { graph.VJPRegistration = before }()
	graph.VJPRegistration = maps.Clone(before)
	delete(graph.VJPRegistration, graph.NodeTypeInvalid) // a change of the user's
	Install()
	require.NotContains(t, graph.VJPRegistration, graph.NodeTypeInvalid)
	require.Contains(t, stock, graph.NodeTypeInvalid)
	require.Contains(t, before, graph.NodeTypeInvalid)
	held := graph.VJPRegistration
	replaceRules() // a goroutine that reads the map must not see it change
	require.NotEqual(t, reflect.ValueOf(held).Pointer(), reflect.ValueOf(graph.VJPRegistration).Pointer())
	for kind := range rules() {
		require.Contains(t, stock, kind, "a rule for what GoMLX cannot differentiate")
	}
	t.Logf("%d of %d rules replaced", len(rules()), len(stock))
}

func TestGradient(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(x, y, z node) (loss node, wrt []node)
		want []float32
	}{
		{"both operands", func(x, y, _ node) (node, []node) { return graph.Dot(x, y), []node{x, y} }, []float32{3, 4, 1, 2}},
		{"one operand", func(x, y, _ node) (node, []node) { return graph.Dot(x, y), []node{y} }, []float32{1, 2}},
		{"the same operand twice", func(x, _, _ node) (node, []node) { return graph.Dot(x, x), []node{x, x} }, []float32{2, 4, 2, 4}},
		{"an input that the loss does not use", func(x, y, z node) (node, []node) { return graph.Dot(x, y), []node{z} }, []float32{0, 0}},
		{"an input behind StopGradient", func(x, y, _ node) (node, []node) {
			return graph.Dot(graph.StopGradient(x), y), []node{x, y}
		}, []float32{0, 0, 1, 2}},
		{"an inner node and its input", func(x, y, _ node) (node, []node) {
			s := graph.Mul(x, y)
			return graph.Dot(s, y), []node{s, x}
		}, []float32{3, 4, 9, 16}},
		{"through an inner node that is selected", func(x, y, _ node) (node, []node) {
			s := graph.Dot(x, y)
			return graph.Mul(s, s), []node{s, y}
		}, []float32{22, 22, 44}},
		{"a custom gradient that differentiates", func(x, y, z node) (node, []node) {
			s := graph.IdentityWithCustomGradient(x, func(_, v node) node {
				return graph.Mul(v, Gradient(graph.Dot(y, z), z)[0])
			})
			return graph.Dot(s, y), []node{x}
		}, []float32{9, 16}},
		{"a custom gradient that differentiates by graph.Gradient", func(x, y, z node) (node, []node) {
			inner := graph.Dot(y, z) // made before, and of no use to the outer gradient
			s := graph.IdentityWithCustomGradient(x, func(_, v node) node {
				return graph.Mul(v, graph.Gradient(inner, z)[0])
			})
			return graph.Dot(s, y), []node{x}
		}, []float32{9, 16}},
		{"a second derivative", func(x, y, _ node) (node, []node) {
			first := Gradient(graph.Dot(x, graph.Mul(x, x)), x)[0]
			return graph.Dot(first, y), []node{x}
		}, []float32{18, 48}},
	} {
		for _, backend := range []backends.Backend{cpu(t), goBackend(t)} {
			t.Run(c.name+"/"+backend.Name(), func(t *testing.T) {
				g := graph.NewGraph(backend, "gradient")
				defer g.Finalize()
				loss, wrt := c.f(graph.Const(g, []float32{1, 2}), graph.Const(g, []float32{3, 4}), graph.Const(g, []float32{5, 6}))
				g.Compile(Gradient(loss, wrt...)...)
				var got []float32
				for _, r := range g.Run() {
					got = append(got, tensors.MustCopyFlatData[float32](r)...)
				}
				require.Equal(t, c.want, got)
				requireNoSelection(t)
			})
		}
	}
}

func requireNoSelection(t *testing.T) {
	t.Helper()
	selections.Range(func(g, _ any) bool {
		require.Fail(t, "a selection outlives its gradient")
		return false
	})
}

func TestGradientPanicsAsGraphGradientDoes(t *testing.T) {
	g := graph.NewGraph(cpu(t), "panics")
	defer g.Finalize()
	other := graph.NewGraph(cpu(t), "other")
	defer other.Finalize()
	x := graph.Parameter(g, "x", shapesOf(2))
	for _, c := range []struct {
		name string
		f    func()
		want string
	}{
		{"not a scalar", func() { Gradient(x, x) }, "only gradients of a non-complex scalar"},
		{"a node of another graph", func() { Gradient(graph.ReduceAllSum(x), graph.Parameter(other, "x", shapesOf(2))) }, "different graphs"},
		{"no node", func() { Gradient(graph.ReduceAllSum(x), nil) }, "nil"},
		{"no loss", func() { Gradient(nil, x) }, "nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, graphs.Catch(c.f), c.want)
			requireNoSelection(t)
		})
	}
}

// TestGradientsInParallel: the selections of graphs that are built at the same time do not mix.
func TestGradientsInParallel(t *testing.T) {
	Install()
	backend := goBackend(t)
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
				g.Compile(Gradient(graph.Dot(x, y), wrt)...)
				if got := g.Run()[0].Value(); !equal(want, got) {
					t.Errorf("got %v, want %v", got, want)
				}
				g.Finalize()
			}
		})
	}
	group.Wait()
	requireNoSelection(t)
}

func equal(want []float32, got any) bool {
	values, ok := got.([]float32)
	return ok && len(values) == 2 && values[0] == want[0] && values[1] == want[1]
}
