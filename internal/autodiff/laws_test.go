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
