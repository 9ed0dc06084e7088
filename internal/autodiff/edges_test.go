package autodiff_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// TestGradientsAtEdges pins the gradients at points without a unique slope. JAX 0.10.2 agrees unless a comment says
// otherwise.
func TestGradientsAtEdges(t *testing.T) {
	total := func(x node) node { return graph.ReduceAllSum(x) }
	for _, c := range []struct {
		name         string
		x, y         []float64
		f            func(x, y node) node
		wantX, wantY []float64
	}{
		{name: "max, ties go to the first", x: []float64{1, 2, 3}, y: []float64{2, 2, 2},
			f: graph.Max, wantX: []float64{0, 1, 1}, wantY: []float64{1, 0, 0}}, // JAX: half to each
		{name: "min, ties go to the second", x: []float64{1, 2, 3}, y: []float64{2, 2, 2},
			f: graph.Min, wantX: []float64{1, 0, 0}, wantY: []float64{0, 1, 1}}, // JAX: half to each
		{name: "max of infinities", x: []float64{inf, -inf, -inf}, y: []float64{inf, -inf, 0},
			f: graph.Max, wantX: []float64{1, 1, 0}, wantY: []float64{0, 0, 1}}, // GoMLX: NaN; JAX: half to each
		{name: "max of NaN", x: []float64{nan, 1}, y: []float64{2, nan},
			f: graph.Max, wantX: []float64{0, 0}, wantY: []float64{1, 1}}, // GoMLX: NaN; JAX: 0 to each
		{name: "reduce_max of NaN", x: []float64{nan, 1},
			f: func(x, _ node) node { return graph.ReduceMax(x, 0) }, wantX: []float64{0, 0}}, // GoMLX and JAX: NaN
		{name: "relu at 0", x: []float64{-1, 0, 1}, y: []float64{0, 0, 0},
			f: graph.Max, wantX: []float64{0, 1, 1}, wantY: []float64{1, 0, 0}}, // jax.nn.relu: 0
		{name: "abs at 0", x: []float64{-1, 0, 1},
			f: func(x, _ node) node { return graph.Abs(x) }, wantX: []float64{-1, 1, 1}},
		{name: "reduce_max, every tie", x: []float64{3, 1, 3},
			f: func(x, _ node) node { return graph.ReduceMax(x, 0) }, wantX: []float64{1, 0, 1}}, // JAX: shared
		{name: "reduce_min, every tie", x: []float64{1, 1, 3},
			f: func(x, _ node) node { return graph.ReduceMin(x, 0) }, wantX: []float64{1, 1, 0}}, // JAX: shared
		{name: "reduce_max of -inf alone", x: []float64{-inf, -inf},
			f: func(x, _ node) node { return graph.ReduceMax(x, 0) }, wantX: []float64{1, 1}}, // GoMLX: NaN; JAX: shared
		{name: "clamp at its bounds", x: []float64{-1, 0, 0.5, 1, 2}, f: func(x, _ node) node {
			return graph.Clamp(graph.ZerosLike(x), x, graph.OnesLike(x))
		}, wantX: []float64{0, 0, 1, 0, 0}},
		{name: "product with a zero", x: []float64{0, 2, 3}, f: func(x, _ node) node { return graph.ReduceMultiply(x) }, wantX: []float64{6, 0, 0}},
		{name: "product with two zeros", x: []float64{0, 0, 3}, f: func(x, _ node) node { return graph.ReduceMultiply(x) }, wantX: []float64{0, 0, 0}},
		{name: "remainder", x: []float64{5, -5}, y: []float64{-3, 3}, f: graph.Rem, wantX: []float64{1, 1}, wantY: []float64{1, 1}},
		{name: "sort with ties", x: []float64{1, 3, 0}, f: func(x, _ node) node {
			return graph.Mul(graph.Sort(x, 0, true), graph.Const(x.Graph(), []float64{0, 1, 2}))
		}, wantX: []float64{1, 2, 0}},
		{name: "pow of 0", x: []float64{0, 0, 2}, y: []float64{2, 1, 3},
			f: graph.Pow, wantX: []float64{0, 1, 12}, wantY: []float64{0, 0, 8 * math.Ln2}}, // GoMLX: NaN for the exponents
		{name: "pow of a negative base", x: []float64{-2}, y: []float64{2},
			f: graph.Pow, wantX: []float64{-4}, wantY: []float64{nan}},
		{name: "pow of a negative base by a constant", x: []float64{-2, 3}, f: func(x, _ node) node {
			b := graph.Const(x.Graph(), []float64{3, 2})
			// The logarithm of -2 is never computed, even in runs that look for NaN.
			return graph.Add(graph.Pow(x, b), autodiff.Gradient(total(graph.Pow(x, b)), b)[0])
		}, wantX: []float64{12, 6 + 3 + 6*math.Log(3)}},
		{name: "div by a large value", x: []float64{1}, y: []float64{1e200},
			f: graph.Div, wantX: []float64{1e-200}, wantY: []float64{0}},
		{name: "div of 0 by 0", x: []float64{0}, y: []float64{0}, f: graph.Div, wantX: []float64{inf}, wantY: []float64{nan}},
		{name: "sqrt at 0", x: []float64{0}, f: func(x, _ node) node { return graph.Sqrt(x) }, wantX: []float64{inf}},
		{name: "log at 0", x: []float64{0}, f: func(x, _ node) node { return graph.Log(x) }, wantX: []float64{inf}},
		{name: "log1p at -1", x: []float64{-1}, f: func(x, _ node) node { return graph.Log1P(x) }, wantX: []float64{inf}},
		{name: "where hides the other side's slope", x: []float64{1, 2}, y: []float64{3, 4},
			f: func(x, y node) node {
				return graph.Where(graph.GreaterThan(x, graph.OnePlus(graph.ZerosLike(x))), x, y)
			},
			wantX: []float64{0, 1}, wantY: []float64{1, 0}},
		{name: "square", x: []float64{-3, 0, 2}, f: func(x, _ node) node { return graph.Square(x) }, wantX: []float64{-6, 0, 4}},
		{name: "max_pool, ties go to the first", x: []float64{0, 0, 1, 1, 2},
			f:     func(x, _ node) node { return graph.MaxPool(x).FullShape().Window(2).Strides(1).Done() },
			wantX: []float64{1, 0, 2, 0, 1}},
		{name: "max_pool of -inf alone, at a padded edge", x: []float64{-inf, 1, 2},
			f: func(x, _ node) node {
				return graph.MaxPool(x).FullShape().Window(2).Strides(2).PaddingPerDim([][2]int{{1, 0}}).Done()
			},
			wantX: []float64{1, 0, 1}}, // flax pads with -inf, which gets it
		{name: "max_pool that leaves the end out", x: []float64{1, 2, 9},
			f: func(x, _ node) node { return graph.MaxPool(x).FullShape().Window(2).Done() }, wantX: []float64{0, 1, 0}},
		{name: "sum_pool that leaves the end out", x: []float64{1, 2, 9},
			f: func(x, _ node) node { return graph.SumPool(x).FullShape().Window(2).Done() }, wantX: []float64{1, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "edge")
			defer g.Finalize()
			wrt := []node{graph.Parameter(g, "x", shapes.Make(dtypes.Float64, len(c.x)))}
			inputs, want := []any{c.x}, [][]float64{c.wantX}
			var y node
			if c.y != nil {
				y = graph.Parameter(g, "y", shapes.Make(dtypes.Float64, len(c.y)))
				wrt, inputs, want = append(wrt, y), append(inputs, c.y), append(want, c.wantY)
			}
			g.Compile(autodiff.Gradient(total(c.f(wrt[0], y)), wrt...)...)
			for i, got := range g.Run(inputs...) {
				values := tensors.MustCopyFlatData[float64](got)
				require.Len(t, values, len(want[i]))
				for j, w := range want[i] {
					if math.IsNaN(w) {
						require.True(t, math.IsNaN(values[j]), "input %d: %v", i, values)
						continue
					}
					require.InDelta(t, w, values[j], 1e-12*max(1, math.Abs(w)), "input %d: %v", i, values)
				}
			}
		})
	}
}

// TestGoMLXIsWrong pins gradients that are silently wrong in GoMLX. If it fails, GoMLX has fixed them: check in
// docs/maintain/gradients.md whether the rule is still needed.
func TestGoMLXIsWrong(t *testing.T) {
	type array = []float32
	for _, c := range []struct {
		name        string
		f           func(x, y node) node
		x, y, v     array // v multiplies the outputs before they are summed
		want, gomlx array // of the gradient by x
	}{
		{"contracting axes in different orders", func(x, y node) node {
			return graph.Einsum("aij,jib->ab", graph.Reshape(x, 1, 2, 2), graph.Reshape(y, 2, 2, 1))
		}, array{1, 2, 3, 4}, array{5, 6, 7, 8}, array{1}, array{5, 7, 6, 8}, array{5, 6, 7, 8}},
		{"a kernel of even size", func(x, y node) node {
			return graph.Convolve(graph.Reshape(x, 1, 3, 1), graph.Reshape(y, 2, 1, 1)).NoPadding().Done()
		}, array{1, 2, 3}, array{10, 100}, array{1, 2}, array{10, 120, 200}, array{120, 200, 0}},
		{"the value around a Pad", func(x, y node) node {
			return graph.Pad(y, graph.Reshape(x), graph.PadAxis{Start: 1, Interior: 1})
		}, array{1}, array{2, 3}, array{1, 10, 100, 1000}, array{101}, array{0}},
	} {
		for _, backend := range []compute.Backend{plugintest.CPU(t), plugintest.Go(t)} {
			t.Run(c.name+"/"+backend.Name(), func(t *testing.T) {
				g := graph.NewGraph(backend, "wrong")
				defer g.Finalize()
				x, y := graph.Parameter(g, "x", shape32(len(c.x))), graph.Parameter(g, "y", shape32(len(c.y)))
				loss := graph.ReduceAllSum(graph.Mul(graph.Reshape(c.f(x, y), -1), graph.Const(g, c.v)))
				g.Compile(autodiff.Gradient(loss, x)[0], stockGradient(loss, x)[0])
				results := g.Run(c.x, c.y)
				require.Equal(t, c.want, results[0].Value())
				require.Equal(t, c.gomlx, results[1].Value(), "GoMLX's own")
			})
		}
	}
}

// TestGradientsInFloat16: intermediate values of GoMLX overflow in float16; JAX's do too, except for the logarithm.
func TestGradientsInFloat16(t *testing.T) {
	for _, c := range []struct {
		name       string
		x, y, want float32 // of the gradient by y
		f          func(x, y node) node
		gomlx      float64
	}{
		{"300/300", 300, 300, -1.0 / 300, graph.Div, 0},
		{"1e-3/1e-3", 1e-3, 1e-3, -1000, graph.Div, -987.5},
		{"1e-5·log(1e-5)", 1e-5, 1e-5, 1, func(x, y node) node { return graph.Mul(x, graph.Log(y)) }, inf},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "half")
			defer g.Finalize()
			parameter := func(name string) node {
				return graph.ConvertDType(graph.Parameter(g, name, shape32()), dtypes.Float16)
			}
			x, y, v := parameter("x"), parameter("y"), parameter("v")
			out := graph.Mul(v, c.f(x, y)) // with a 1 that XLA does not know: it replaces (a/b)/b by a/b²
			g.Compile(graph.ConvertDType(autodiff.Gradient(out, y)[0], dtypes.Float32), graph.ConvertDType(stockGradient(out, y)[0], dtypes.Float32))
			results := g.Run(c.x, c.y, float32(1))
			require.InEpsilon(t, c.want, results[0].Value(), 2e-3)
			require.Equal(t, float32(c.gomlx), results[1].Value().(float32)+0, "GoMLX's own")
		})
	}
}

// TestLargeWindowsAreLeftToGoMLX: a window with more than maxTaps elements keeps GoMLX's rule, with the same result.
func TestLargeWindowsAreLeftToGoMLX(t *testing.T) {
	for _, c := range []struct {
		name string
		pool func(node) *graph.PoolBuilder
		kind string
		size int
		want int
	}{
		{"max, small", graph.MaxPool, "select_and_scatter", 8, 0},
		{"max, large", graph.MaxPool, "select_and_scatter", 9, 1},
		{"sum, small", graph.SumPool, "reduce_window", 8, 1},
		{"sum, large", graph.SumPool, "reduce_window", 9, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := lower(func(g *graph.Graph) []node {
				x := graph.IotaFull(g, shape32(1, 20, 20, 1))
				loss := graph.ReduceAllSum(c.pool(x).Window(c.size).Strides(1).Done())
				return append([]node{loss}, autodiff.Gradient(loss, x)...)
			})
			require.Equal(t, c.want, p.written(t, c.kind))
		})
	}
}
