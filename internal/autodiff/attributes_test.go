//lazo:norace
package autodiff

import (
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// stockBackend is GoMLX's own: plugintest's runtimes import this package.
func stockBackend(t *testing.T) compute.Backend {
	b, err := gobackend.New("")
	require.NoError(t, err)
	t.Cleanup(b.Finalize)
	return b
}

// TestAttributes fails if GoMLX changes a field that the rules read.
func TestAttributes(t *testing.T) {
	g := graph.NewGraph(stockBackend(t), "attributes")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4, 6, 6, 2))

	a := attributesOf(graph.DotGeneral(x, []int{1, 2}, []int{0}, x, []int{2, 1}, []int{0}))
	require.Equal(t, []int{1, 2}, a.ints("lhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("lhsBatchAxes"))
	require.Equal(t, []int{2, 1}, a.ints("rhsContractingAxes"))
	require.Equal(t, []int{0}, a.ints("rhsBatchAxes"))

	kernel := graph.Parameter(g, "kernel", shapes.Make(dtypes.Float32, 3, 3, 1, 2))
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
	g := graph.NewGraph(stockBackend(t), "attributes")
	defer g.Finalize()
	dot := graph.DotGeneral(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2)), nil, nil, graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 2)), nil, nil)
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
