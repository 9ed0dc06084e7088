package autodiff

import (
	"maps"
	"reflect"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

func shape32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

// TestAttributes fails if GoMLX changes a field that the rules read.
func TestAttributes(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "attributes")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shape32(4, 6, 6, 2))

	a := attributesOf(graph.DotGeneral(x, []int{1, 2}, []int{0}, x, []int{2, 1}, []int{0}))
	require.Equal(t, []int{1, 2}, a.ints("lhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("lhsBatchAxes"))
	require.Equal(t, []int{2, 1}, a.ints("rhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("rhsBatchAxes"))

	kernel := graph.Parameter(g, "kernel", shape32(3, 3, 1, 2))
	axes := compute.ConvolveAxesConfig{
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
	require.Equal(t, int(compute.ReduceOpMax), a.int("reductionType"))
	require.Equal(t, []int{1, 3, 3, 1}, a.ints("windowDimensions"))
	require.Equal(t, []int{1, 2, 2, 1}, a.ints("strides"))
	require.Equal(t, [][2]int{{}, {1, 1}, {1, 1}, {}}, a.pairs("paddings"))
	require.Nil(t, a.ints("inputDilations"))
	require.Nil(t, a.ints("windowDilations"))

	require.Equal(t, []int{1, 2}, attributesOf(graph.ReduceMax(x, 2, 1)).ints("axes"))
	require.Equal(t, []int{3}, attributesOf(graph.ReduceMin(x, -1)).ints("axes"))

	padded := graph.Pad(x, graph.Const(g, float32(0)), graph.PadAxis{Start: 1, End: 2, Interior: 3})
	p := attributes{padded, attributesOf(padded).field("axesConfig", reflect.Slice).Index(0)}
	require.Equal(t, []int{1, 2, 3}, []int{p.int("Start"), p.int("End"), p.int("Interior")})
}

func TestAttributesThatAreNotThere(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "attributes")
	defer g.Finalize()
	dot := graph.DotGeneral(graph.Parameter(g, "x", shape32(2)), nil, nil, graph.Parameter(g, "y", shape32(2)), nil, nil)
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
			require.ErrorContains(t, err, "this is not GoMLX v0.28.8")
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
	for kind := range missing() {
		require.NotContains(t, stock, kind, "GoMLX has a rule now: see whether ours is needed")
	}
	t.Logf("%d of %d rules replaced", len(rules()), len(stock))
}

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
				return graph.Mul(v, Gradient(graph.DotProduct(y, z), z)[0])
			})
			return graph.DotProduct(s, y), []node{x}
		}, []float32{9, 16}},
		{"a custom gradient that differentiates by graph.Gradient", func(x, y, z node) (node, []node) {
			inner := graph.DotProduct(y, z) // made before, and of no use to the outer gradient
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
			first := Gradient(graph.DotProduct(x, graph.Mul(x, x)), x)[0]
			return graph.DotProduct(first, y), []node{x}
		}, []float32{18, 48}},
	} {
		for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
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
			})
		}
	}
}

// TestR03_gradientInACustomGradient: a custom gradient that differentiates by graph.Gradient, all that a user has, by
// what the outer gradient does not ask for. dw was 3: what lay outside of the outer call's selection was left out of
// the inner one too.
func TestR03_gradientInACustomGradient(t *testing.T) {
	for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
		g := graph.NewGraph(backend, "nested")
		defer g.Finalize()
		w, x := graph.Const(g, float32(2)), graph.Const(g, float32(3))
		y := graph.Mul(w, x)
		h := graph.IdentityWithCustomGradient(y, func(_, v node) node {
			return graph.Add(v, graph.Gradient(graph.ReduceAllSum(y), x)[0])
		})
		g.Compile(Gradient(h, w)...)
		require.Equal(t, float32((1+2)*3), g.Run()[0].Value(), "%s: (v + w)·x", backend.Name())
		t.Logf("%s: dw = 9", backend.Name())
	}
}

// TestGradientRefusesClosures: GoMLX gives 0 for what a branch or a loop takes from outside.
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
				return []node{graph.Add(i, graph.Const(g, float32(1))), graph.Add(sum, x)} // no OnePlus: GoMLX would take its 1 for main
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
				gradient := Gradient
				if c.refused {
					require.ErrorContains(t, graphs.Catch(func() { Gradient(loss, wrt) }), "autodiff: gradient: the loss depends on an If or a While")
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
		{"not a scalar", func() { Gradient(x, x) }, "only gradients of a non-complex scalar"},
		{"a node of another graph", func() { Gradient(graph.ReduceAllSum(x), graph.Parameter(other, "x", shape32(2))) }, "different graphs"},
		{"no node", func() { Gradient(graph.ReduceAllSum(x), nil) }, "nil"},
		{"no loss", func() { Gradient(nil, x) }, "nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, graphs.Catch(c.f), c.want)
		})
	}
}

// TestGradientsInParallel: graphs may be differentiated at the same time.
func TestGradientsInParallel(t *testing.T) {
	Install()
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
				g.Compile(Gradient(graph.DotProduct(x, y), wrt)...)
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
