package flaxlike

import (
	"fmt"
	"math"

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
