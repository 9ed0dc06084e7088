package flaxlike

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/outputs"
)

// eachPearson is Keras's correlation, within each example.
func eachPearson(labels, output *graph.Node) *graph.Node {
	x, y := apart("pearson", labels, output)
	return graph.Div(meanOfLast(graph.Mul(x, y)), graph.Mul(graph.Sqrt(meanOfLast(graph.Square(x))), graph.Sqrt(meanOfLast(graph.Square(y)))))
}

// eachConcordance is Lin's coefficient, within each example.
func eachConcordance(labels, output *graph.Node) *graph.Node {
	x, y := apart("concordance", labels, output)
	between := graph.Square(meanOfLast(graph.Sub(graph.ConvertDType(output, x.DType()), graph.ConvertDType(labels, x.DType()))))
	spread := graph.Add(graph.Add(meanOfLast(graph.Square(x)), meanOfLast(graph.Square(y))), between)
	return graph.Div(graph.MulScalar(meanOfLast(graph.Mul(x, y)), 2), graph.AddScalar(spread, 1e-7))
}

func apart(name string, labels, output *graph.Node) (x, y *graph.Node) {
	labels = outputs.Same(name+"_correlation", labels, output)
	if output.Rank() < 2 || outputs.Classes(output) < 2 {
		panic(fmt.Errorf("metric %q correlates the numbers of each example, as Keras's, and the output %s has one an example: "+
			"expected [batch, …, n], with n of two or more; to correlate over all examples use %q", name+"_correlation", output.Shape(), name))
	}
	less := func(v *graph.Node) *graph.Node {
		v = graph.ConvertDType(v, dtypes.Float64)
		return graph.Sub(v, graph.ExpandAxes(meanOfLast(v), -1))
	}
	return less(labels), less(output)
}

func meanOfLast(x *graph.Node) *graph.Node { return graph.ReduceMean(x, -1) }
