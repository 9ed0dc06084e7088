package metrics

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

func weigh(name string, weights, examples *graph.Node) *graph.Node {
	to := shapes.Make(dtype, examples.Shape().Dimensions...)
	if weights == nil {
		return graph.Ones(examples.Graph(), to)
	}
	for weights.Rank() > 1 && weights.Shape().Dim(-1) == 1 { // [batch, 1] means [batch]
		weights = graph.Squeeze(weights, -1)
	}
	w := weights.Shape()
	fits := w.Rank() <= to.Rank() && !w.DType.IsComplex()
	for i := 0; fits && i < w.Rank(); i++ {
		fits = w.Dimensions[i] == to.Dimensions[i]
	}
	if !fits {
		panic(fmt.Errorf("metrics: %s: weights %s do not fit examples of dimensions %v: expected these dimensions, or the first of them", name, w, to.Dimensions))
	}
	weights = graph.ConvertDType(weights, dtype)
	for weights.Rank() < to.Rank() {
		weights = graph.ExpandAxes(weights, -1)
	}
	return graph.BroadcastToShape(weights, to)
}

func counted(weights, x *graph.Node) *graph.Node {
	x = graph.ConvertDType(x, dtype)
	return graph.Where(graph.NotEqual(weights, graph.ScalarZero(x.Graph(), dtype)), x, graph.ZerosLike(x))
}

func total(weights, x *graph.Node) *graph.Node {
	return graph.ReduceAllSum(graph.Mul(weights, counted(weights, x)))
}

func ratio(a, b *graph.Node) *graph.Node {
	none := graph.Equal(b, graph.ScalarZero(b.Graph(), dtype))
	return graph.Where(none, graph.ZerosLike(b), graph.Div(a, graph.Where(none, graph.OnesLike(b), b)))
}

// poison is NaN if any weighted example is invalid, else 0: graphs cannot return errors.
func poison(weights, invalid *graph.Node) *graph.Node {
	g := weights.Graph()
	bad := graph.GreaterThan(graph.ReduceAllSum(counted(weights, invalid)), graph.ScalarZero(g, dtype))
	return graph.Where(bad, nan(g), graph.ScalarZero(g, dtype))
}

// tally omits invalid examples: backends differ in scatters out of range.
func tally(bin, weights, invalid *graph.Node, n int) *graph.Node {
	bin = graph.Where(invalid, graph.ZerosLike(bin), bin)
	weights = graph.Where(invalid, graph.ZerosLike(weights), weights)
	size := bin.Shape().Size()
	return graph.Scatter(graph.Reshape(bin, size, 1), graph.Reshape(weights, size), shapes.Make(dtype, n), false, false)
}

func nan(g *graph.Graph) *graph.Node { return graph.Scalar(g, dtype, math.NaN()) }
