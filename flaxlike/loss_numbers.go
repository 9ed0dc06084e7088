package flaxlike

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
)

// tiny keeps logarithms and quotients finite: Keras's epsilon, in its places.
const tiny = 1e-7

func poisson(labels, output *managed.Node) *managed.Node {
	labels = same("poisson", labels, output)
	return graph.Sub(output, graph.Mul(labels, graph.Log(graph.AddScalar(output, tiny))))
}

// logCosh is d + softplus(-2d) - log(2), which overflows for no d.
func logCosh(labels, output *managed.Node) *managed.Node {
	d := graph.Abs(graph.Sub(output, same("log_cosh", labels, output)))
	return graph.AddScalar(graph.Add(d, graph.Log1P(graph.Exp(graph.MulScalar(d, -2)))), -math.Ln2)
}

func percentageError(labels, output *managed.Node) *managed.Node {
	labels = same("mean_absolute_percentage_error", labels, output)
	share := graph.Div(graph.Abs(graph.Sub(labels, output)), graph.MaxScalar(graph.Abs(labels), tiny))
	return graph.MulScalar(share, 100)
}

func squaredLogarithmicError(labels, output *managed.Node) *managed.Node {
	labels = same("mean_squared_logarithmic_error", labels, output)
	log := func(x *managed.Node) *managed.Node { return graph.Log1P(graph.MaxScalar(x, tiny)) }
	return graph.Square(graph.Sub(log(output), log(labels)))
}

// cosine is minus the cosine of the angle between two vectors; that with a vector of zeros is 0.
func cosine(labels, output *managed.Node) *managed.Node {
	labels = same("cosine_similarity", labels, output)
	if output.Rank() < 2 || classesOf(output) < 2 {
		panic(fmt.Errorf("cosine_similarity: the output %s has one number an example, whose cosine is 1 or -1 whatever its size: "+
			"expected vectors [batch, …, n], with n of two or more; of one number take mean_squared_error", output.Shape()))
	}
	unit := func(x *managed.Node) *managed.Node {
		return graph.Div(x, graph.Sqrt(graph.MaxScalar(graph.ReduceAndKeep(graph.Square(x), graph.ReduceSum, -1), tiny*tiny)))
	}
	return graph.Neg(graph.ReduceSum(graph.Mul(unit(labels), unit(output)), -1))
}

// eachPearson is the correlation of the numbers of each example, as Keras's.
func eachPearson(labels, output *managed.Node) *managed.Node {
	x, y := apart("pearson", labels, output)
	return graph.Div(meanOfLast(graph.Mul(x, y)), graph.Mul(graph.Sqrt(meanOfLast(graph.Square(x))), graph.Sqrt(meanOfLast(graph.Square(y)))))
}

// eachConcordance is Lin's coefficient of the numbers of each example, as Keras's.
func eachConcordance(labels, output *managed.Node) *managed.Node {
	x, y := apart("concordance", labels, output)
	between := graph.Square(meanOfLast(graph.Sub(graph.ConvertDType(output, x.DType()), graph.ConvertDType(labels, x.DType()))))
	spread := graph.Add(graph.Add(meanOfLast(graph.Square(x)), meanOfLast(graph.Square(y))), between)
	return graph.Div(graph.MulScalar(meanOfLast(graph.Mul(x, y)), 2), graph.AddScalar(spread, tiny))
}

// apart are labels and output less the mean of their example, as float64.
func apart(name string, labels, output *managed.Node) (x, y *managed.Node) {
	labels = same(name+"_correlation", labels, output)
	if output.Rank() < 2 || classesOf(output) < 2 {
		panic(fmt.Errorf("metric %q correlates the numbers of each example, as Keras's, and the output %s has one an example: "+
			"expected [batch, …, n], with n of two or more; of all examples take %q", name+"_correlation", output.Shape(), name))
	}
	less := func(v *managed.Node) *managed.Node {
		v = graph.ConvertDType(v, dtypes.Float64)
		return graph.Sub(v, graph.ExpandAxes(meanOfLast(v), -1))
	}
	return less(labels), less(output)
}

func meanOfLast(x *managed.Node) *managed.Node { return graph.ReduceMean(x, -1) }
