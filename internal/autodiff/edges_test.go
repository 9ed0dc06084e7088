package autodiff

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/stretchr/testify/require"
)

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// TestGradientsAtEdges pins the gradients where a function has no single slope. JAX 0.10.2 gives the same where no
// comment says otherwise.
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
		{name: "pow of 0", x: []float64{0, 0, 2}, y: []float64{2, 1, 3},
			f: graph.Pow, wantX: []float64{0, 1, 12}, wantY: []float64{0, 0, 8 * math.Ln2}}, // GoMLX: NaN for the exponents
		{name: "pow of a negative base", x: []float64{-2}, y: []float64{2},
			f: graph.Pow, wantX: []float64{-4}, wantY: []float64{nan}},
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
			g := graph.NewGraph(cpu(t), "edge")
			defer g.Finalize()
			wrt := []node{graph.ConstTensor(g, tensors.FromFlatDataAndDimensions(c.x, len(c.x)))}
			want := [][]float64{c.wantX}
			var y node
			if c.y != nil {
				y = graph.ConstTensor(g, tensors.FromFlatDataAndDimensions(c.y, len(c.y)))
				wrt, want = append(wrt, y), append(want, c.wantY)
			}
			g.Compile(Gradient(total(c.f(wrt[0], y)), wrt...)...)
			for i, got := range g.Run() {
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
			p, _ := lower(t, func(g *graph.Graph) []node {
				x := graph.IotaFull(g, shapesOf(1, 20, 20, 1))
				return Gradient(graph.ReduceAllSum(c.pool(x).Window(c.size).Strides(1).Done()), x)
			})
			require.Equal(t, c.want, p.written(t, c.kind))
		})
	}
}
