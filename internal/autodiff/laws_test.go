package autodiff_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// values are parameters of a graph with the integers in [-1, 1] to run it with: sums of their products are exact in
// every dtype. They are not constants, because XLA folds a dot_general of constants wrongly if it has only three batch
// axes, out of order (CPU plugin 0.0.1).
type values struct {
	g      *graph.Graph
	random *rand.Rand
	inputs []any
}

func newValues(g *graph.Graph, seed uint64) *values {
	return &values{g: g, random: rand.New(rand.NewPCG(seed, 0))}
}

func (v *values) parameter(dtype dtypes.DType, dims ...int) node {
	shape := shapes.Make(dtypes.Float32, dims...)
	flat := make([]float32, shape.Size())
	for i := range flat {
		flat[i] = float32(v.random.IntN(3) - 1)
	}
	p := graph.Parameter(v.g, fmt.Sprint("p", len(v.inputs)), shape)
	v.inputs = append(v.inputs, tensors.FromFlatDataAndDimensions(flat, dims...))
	if dtype.IsComplex() {
		p = graph.ConvertDType(p, dtype.RealDType())
		return graph.Complex(p, graph.OneMinus(p))
	}
	return graph.ConvertDType(p, dtype)
}

// bilinear checks the law that defines the gradient of a function that is linear in each operand: ⟨gradient wrt a, a'⟩
// = ⟨v, f(a', b)⟩ for all a', and likewise for b. All numbers are integers, so it holds exactly.
func bilinear(t require.TestingT, backend compute.Backend, dtype dtypes.DType, a, b []int, f func(a, b node) node) {
	g := graph.NewGraph(backend, "bilinear")
	defer g.Finalize()
	drawn := newValues(g, 1)
	draw := func(dims []int) node { return drawn.parameter(dtype, dims...) }
	x, y := draw(a), draw(b)
	out := f(x, y)
	v := drawn.parameter(out.DType(), out.Shape().Dimensions...)
	inner := func(a, b node) node {
		p := graph.Mul(a, b)
		if dtype.IsComplex() {
			p = graph.Real(p)
		}
		return graph.ReduceAllSum(graph.ConvertDType(p, dtypes.Float64))
	}
	gradients := autodiff.Gradient(inner(out, v), x, y)
	require.True(t, gradients[0].Shape().Equal(x.Shape()))
	require.True(t, gradients[1].Shape().Equal(y.Shape()))
	x2, y2 := draw(a), draw(b)
	g.Compile(inner(gradients[0], x2), inner(v, f(x2, y)), inner(gradients[1], y2), inner(v, f(x, y2)))
	results := g.Run(drawn.inputs...)
	value := func(i int) float64 { return tensors.ToScalar[float64](results[i]) }
	require.Equal(t, value(1), value(0), "first operand")
	require.Equal(t, value(3), value(2), "second operand")
}

// TestDotGradientIsTheAdjoint draws layouts of batch, contracting and free axes in any order, for both backends.
func TestDotGradientIsTheAdjoint(t *testing.T) {
	floats := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16}
	for _, c := range []struct {
		name  string
		open  func(testing.TB, ...xla.Option) *xla.Runtime
		types []dtypes.DType
		least int // GoMLX's Go backend has no empty arrays
	}{
		{"xla", plugintest.Uncached, append(floats, dtypes.Float16, dtypes.Complex64, dtypes.Complex128), 0},
		{"go", plugintest.Go, floats, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend, cases := c.open(t), 0
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(c.least, 4)
				batch := rapid.SliceOfN(size, 0, 3).Draw(t, "batch")
				contracting := rapid.SliceOfN(size, 0, 2).Draw(t, "contracting")
				lhs := newLayout(t, "lhs", batch, contracting, rapid.SliceOfN(size, 0, 3).Draw(t, "free of lhs"))
				rhs := newLayout(t, "rhs", batch, contracting, rapid.SliceOfN(size, 0, 3).Draw(t, "free of rhs"))
				dtype := rapid.SampledFrom(c.types).Draw(t, "dtype")
				sums, out := dtypes.InvalidDType, dtypes.InvalidDType
				if dtype.IsFloat() {
					sums = rapid.SampledFrom([]dtypes.DType{dtypes.InvalidDType, dtypes.Float32, dtypes.Float64}).Draw(t, "summed in")
					out = rapid.SampledFrom([]dtypes.DType{dtypes.InvalidDType, dtype, dtypes.Float32, dtypes.Float64}).Draw(t, "as")
				}
				bilinear(t, backend, dtype, lhs.dims, rhs.dims, func(a, b node) node {
					return graph.Dot(a, b).WithAccumulatorDType(sums).WithOutputDType(out).General(
						slices.Clone(lhs.contracting), slices.Clone(lhs.batch), slices.Clone(rhs.contracting), slices.Clone(rhs.batch))
				})
				cases++
			})
			t.Logf("%d layouts", cases)
		})
	}
}

// layout is an operand of a DotGeneral with its axes shuffled.
type layout struct{ dims, batch, contracting []int }

func newLayout(t *rapid.T, name string, batch, contracting, free []int) layout {
	sizes := slices.Concat(batch, contracting, free)
	order := rapid.Permutation(autodiff.AxesFrom(0, len(sizes))).Draw(t, name) // the place of each of sizes
	l := layout{dims: make([]int, len(sizes))}
	for i, place := range order {
		l.dims[place] = sizes[i]
	}
	l.batch, l.contracting = order[:len(batch)], order[len(batch):len(batch)+len(contracting)]
	return l
}

func TestDotOfVectorsAndMatrices(t *testing.T) {
	backend := plugintest.Uncached(t)
	for _, c := range []struct {
		name string
		a, b []int
	}{
		{"vector, vector", []int{5}, []int{5}},
		{"matrix, vector", []int{4, 5}, []int{5}},
		{"vector, matrix", []int{5}, []int{5, 3}},
		{"matrix, matrix", []int{4, 5}, []int{5, 3}},
		{"nothing to contract over", []int{4, 0}, []int{0, 3}},
		{"empty result", []int{0, 5}, []int{5, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bilinear(t, backend, dtypes.Float32, c.a, c.b, graph.DotProduct)
		})
	}
}

// TestConvolutionGradientIsTheAdjoint draws convolutions with strides, dilations of both operands, uneven and negative
// paddings, groups of either kind and axes in any order.
func TestConvolutionGradientIsTheAdjoint(t *testing.T) {
	backend, cases := plugintest.Uncached(t), 0
	rapid.Check(t, func(t *rapid.T) {
		spatial := rapid.IntRange(1, 2).Draw(t, "spatial axes")
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		channelGroups, batchGroups := groups, 1
		if rapid.Bool().Draw(t, "batch groups") {
			channelGroups, batchGroups = 1, groups
		}
		small := rapid.IntRange(1, 3)
		batch, in, out := small.Draw(t, "batch")*batchGroups, small.Draw(t, "in"), small.Draw(t, "out")*groups
		if rapid.Bool().Draw(t, "depthwise") && batchGroups == 1 {
			in, out = 1, groups
		}
		input, kernel := []int{batch, in * channelGroups}, []int{in, out}
		defaults := rapid.Bool().Draw(t, "defaults")
		var strides, inputDilations, kernelDilations []int
		var paddings [][2]int
		for range spatial {
			n, k := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "k")
			spread, dilation := rapid.IntRange(1, 2).Draw(t, "input dilation"), rapid.IntRange(1, 2).Draw(t, "kernel dilation")
			if defaults {
				spread, dilation = 1, 1
			}
			reach := (k-1)*dilation + 1
			padding := [2]int{rapid.IntRange(-1, 3).Draw(t, "low"), rapid.IntRange(-1, 3).Draw(t, "high")}
			if short := reach - ((n-1)*spread + 1 + padding[0] + padding[1]); short > 0 {
				padding[1] += short // the window must fit
			}
			input, kernel = append(input, n), append(kernel, k)
			strides = append(strides, small.Draw(t, "stride"))
			inputDilations, kernelDilations = append(inputDilations, spread), append(kernelDilations, dilation)
			paddings = append(paddings, padding)
		}
		order := func(name string) []int { return rapid.Permutation(autodiff.AxesFrom(0, spatial+2)).Draw(t, name) }
		place := func(dims, order []int) []int {
			placed := make([]int, len(dims))
			for i, at := range order {
				placed[at] = dims[i]
			}
			return placed
		}
		i, k, o := order("input axes"), order("kernel axes"), order("output axes")
		axes := compute.ConvolveAxesConfig{
			InputBatch: i[0], InputChannels: i[1], InputSpatial: i[2:],
			KernelInputChannels: k[0], KernelOutputChannels: k[1], KernelSpatial: k[2:],
			OutputBatch: o[0], OutputChannels: o[1], OutputSpatial: o[2:],
		}
		if defaults {
			strides, inputDilations, kernelDilations = nil, nil, nil
		}
		bilinear(t, backend, dtypes.Float64, place(input, i), place(kernel, k), func(a, b node) node {
			return graph.ConvGeneral(a, b, axes, strides, paddings, inputDilations, kernelDilations, channelGroups, batchGroups)
		})
		cases++
	})
	t.Logf("%d convolutions", cases)
}

// TestPoolingGradient compares pools over values with many ties with a plain loop: at ties the first element of the
// window, in row-major order, gets all. (GoMLX's select_and_scatter leaves the choice to XLA.)
func TestPoolingGradient(t *testing.T) {
	backend, cases := plugintest.Uncached(t), 0
	rapid.Check(t, func(t *rapid.T) {
		var n, size, stride [2]int
		var paddings [][2]int
		for axis := range n {
			size[axis] = rapid.IntRange(1, 3).Draw(t, "size")
			n[axis] = rapid.IntRange(size[axis], 7).Draw(t, "n")
			stride[axis] = rapid.IntRange(1, 4).Draw(t, "stride")
			paddings = append(paddings, [2]int{rapid.IntRange(0, size[axis]-1).Draw(t, "low"), rapid.IntRange(0, size[axis]-1).Draw(t, "high")})
		}
		if rapid.Bool().Draw(t, "tiles") {
			stride, paddings = size, nil
		}
		kind := rapid.SampledFrom([]compute.ReduceOpType{compute.ReduceOpMax, compute.ReduceOpMin, compute.ReduceOpSum}).Draw(t, "kind")
		g := graph.NewGraph(backend, "pool")
		defer g.Finalize()
		drawn := newValues(g, rapid.Uint64().Draw(t, "values"))
		dtype := rapid.SampledFrom([]dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16, dtypes.Float16}).Draw(t, "dtype")
		x := drawn.parameter(dtype, n[:]...)
		out := graph.BackendReduceWindow(x, kind, size[:], stride[:], nil, nil, paddings)
		v := drawn.parameter(dtype, out.Shape().Dimensions...)
		g.Compile(graph.ConvertDType(autodiff.Gradient(graph.ReduceAllSum(graph.Mul(out, v)), x)[0], dtypes.Float32))

		at := func(i int) [][]float32 { return drawn.inputs[i].(*tensors.Tensor).Value().([][]float32) }
		want := make([][]float32, n[0])
		for i := range want {
			want[i] = make([]float32, n[1])
		}
		if paddings == nil {
			paddings = make([][2]int, 2)
		}
		for i, row := range at(1) {
			for j, given := range row {
				chosen, found := [2]int{}, false
				for k := range size[0] * size[1] {
					r, c := i*stride[0]-paddings[0][0]+k/size[1], j*stride[1]-paddings[1][0]+k%size[1]
					if r < 0 || c < 0 || r >= n[0] || c >= n[1] {
						continue
					}
					if kind == compute.ReduceOpSum {
						want[r][c] += given
						continue
					}
					here, best := at(0)[r][c], at(0)[chosen[0]][chosen[1]]
					if !found || kind == compute.ReduceOpMax && here > best || kind == compute.ReduceOpMin && here < best {
						chosen, found = [2]int{r, c}, true
					}
				}
				if found {
					want[chosen[0]][chosen[1]] += given
				}
			}
		}
		require.Equal(t, want, g.Run(drawn.inputs...)[0].Value())
		cases++
	})
	t.Logf("%d pools", cases)
}
