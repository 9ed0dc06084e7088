package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
)

func squaredHinge(labels, output *managed.Node) *managed.Node {
	margin := graph.OneMinus(graph.Mul(output, same("squared_hinge", labels, output)))
	return graph.Square(graph.Max(margin, graph.ZerosLike(margin)))
}

// categoricalHinge is how far the best of the other classes is above the own one, less 1.
func categoricalHinge(labels, output *managed.Node) *managed.Node {
	severalClasses("categorical_hinge", output, "hinge, with labels -1 or 1")
	labels = same("categorical_hinge", labels, output)
	own := graph.ReduceSum(graph.Mul(labels, output), -1)
	others := graph.Mul(graph.OneMinus(labels), output)
	best := graph.StopGradient(graph.ReduceAndKeep(others, graph.ReduceMax, -1))
	equals := graph.Equal(others, best) // they share the slope, as in JAX
	off := graph.ReduceSum(graph.Where(equals, graph.Sub(others, best), graph.ZerosLike(others)), -1)
	shared := graph.Div(off, graph.ReduceSum(graph.ConvertDType(equals, output.DType()), -1))
	return above0(graph.AddScalar(graph.Sub(graph.Add(graph.Squeeze(best, -1), shared), own), 1))
}

// binaryLosses are of logits each of which is of a class and its opposite.
var binaryLosses = map[string]bool{"binary_crossentropy": true, "binary_focal_crossentropy": true}

// severalClasses refuses a loss of classes for an output of one number: its softmax is always 1.
func severalClasses(what string, output *managed.Node, instead string) {
	if output.Rank() < 2 || classesOf(output) < 2 {
		panic(fmt.Errorf("%s: the output %s has one class, whose probability is always 1: expected [batch, …, classes], with two or more; of one logit take %s",
			what, output.Shape(), instead))
	}
}

// The focal losses count an example by the square of what its probability lacks, so that the easy ones fade (Lin et al.
// 2017). A probability is at least 1e-7 and at most 1 less float32's step below 1 there, as Keras's: beyond these a
// logit has no slope.

const (
	leastLog = -16.118095650958319 // ln(1e-7)
	mostLog  = -1.1920929665620834e-07
)

func focalCrossEntropy(labels, logits *managed.Node) *managed.Node {
	const name, alpha = "categorical_focal_crossentropy", 0.25
	severalClasses(name, logits, "binary_focal_crossentropy")
	noProbabilities(name, logits)
	labels = same(name, labels, logits)
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, mostLog)
	each := graph.Mul(graph.Square(graph.OneMinus(graph.Exp(log))), graph.Mul(labels, log))
	return graph.MulScalar(graph.ReduceSum(each, -1), -alpha)
}

func binaryFocalCrossEntropy(labels, z *managed.Node) *managed.Node {
	noProbabilities("binary_focal_crossentropy", z)
	labels = same("binary_focal_crossentropy", labels, z)
	p := graph.Sigmoid(z)
	lacks := graph.Add(graph.Mul(labels, graph.OneMinus(p)), graph.Mul(graph.OneMinus(labels), p))
	one := graph.ClipScalar(graph.Neg(softPlus(graph.Neg(z))), leastLog, mostLog) // the logarithm of p
	zero := graph.ClipScalar(graph.Neg(softPlus(z)), -15.942385152878742, -tiny)
	return graph.Neg(graph.Mul(graph.Square(lacks), graph.Add(graph.Mul(labels, one), graph.Mul(graph.OneMinus(labels), zero))))
}

// softPlus is log(1 + exp(z)), which overflows for no z.
func softPlus(z *managed.Node) *managed.Node {
	return graph.Add(graph.Max(z, graph.ZerosLike(z)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z)))))
}

// ofBatch is a loss of the whole batch, of which each example is given the value; the mask, if there is one, says what
// is padding.
type ofBatch func(labels, output, mask *managed.Node) *managed.Node

func (f ofBatch) unmasked(labels, output *managed.Node) *managed.Node { return f(labels, output, nil) }

var lossesOfBatches = map[string]ofBatch{maskedSparse: maskedOf, "dice": dice, "tversky": tversky}

// dice is 1 less twice what labels and output share, of what they have together (Milletari et al. 2016).
func dice(labels, output, mask *managed.Node) *managed.Node {
	return overlap("dice", labels, output, mask)
}

// tversky is [dice] with weights for false positives and false negatives, which are equal here (Salehi et al. 2017).
func tversky(labels, output, mask *managed.Node) *managed.Node {
	return overlap("tversky", labels, output, mask)
}

func overlap(name string, labels, output, mask *managed.Node) *managed.Node {
	labels = same(name, labels, output)
	if mask != nil {
		mask = graph.BroadcastToDims(expanded(mask, output), output.Shape().Dimensions...)
		labels, output = graph.Where(mask, labels, graph.ZerosLike(labels)), graph.Where(mask, output, graph.ZerosLike(output))
	}
	both := graph.ReduceAllSum(graph.Mul(labels, output))
	all := graph.Add(graph.ReduceAllSum(labels), graph.ReduceAllSum(output))
	v := graph.OneMinus(graph.Div(graph.MulScalar(both, 2), graph.AddScalar(all, tiny)))
	return graph.BroadcastToDims(v, output.Shape().Dimensions[0])
}
