package losses

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/lazo-ml/lazo/internal/autodiff" // a loss has the right gradient
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/internal/outputs"
)

// Func is a loss: from the labels and an output to a value for each example, [batch, …]. A scalar is the loss of the
// whole batch.
type Func func(labels, output *graph.Node) *graph.Node

// Named is a loss by Keras's name, or a short one:
//
//	sparse_categorical_crossentropy   integer labels [batch, …] and logits [batch, …, classes], in nats
//	masked_sparse_categorical_crossentropy  the same over the labels of a batch that are not below 0, as data.PadSequences or a
//	                                  tokenizer fills up with: their mean, 0 if there is none
//	categorical_crossentropy          labels as probabilities of the logits' shape
//	binary_crossentropy               labels 0 or 1 and logits, of one shape
//	mean_squared_error, mse           labels and output of one shape
//	mean_absolute_error, mae
//	huber                             squared up to an error of 1, then linear (Huber 1964)
//	log_cosh                          the logarithm of the error's hyperbolic cosine: as huber, and smooth
//	mean_absolute_percentage_error, mape  in percent of the labels
//	mean_squared_logarithmic_error, msle  of 1 + labels and 1 + output
//	poisson                           labels as counts, output as the expected count, above 0
//	cosine_similarity                 minus the cosine of vectors, which the last axis holds
//	hinge, squared_hinge              labels -1 or 1
//	categorical_hinge                 labels one-hot
//	kl_divergence                     labels as probabilities, output as logits
//	categorical_focal_crossentropy    as categorical_crossentropy, with gamma 2 and alpha 0.25 (Lin et al. 2017)
//	binary_focal_crossentropy         as binary_crossentropy, with gamma 2
//	dice, tversky                     labels 0 or 1 and probabilities, of one shape: of the whole batch, so that batches of other
//	                                  sizes have other values
//
// Labels of the hinges are -1 or 1 alone. Tversky's two weights are 0.5, which makes it dice.
//
// The crossentropies take logits: the logarithm of a softmax that was rounded to 0 is infinite. An output that went
// through softmax or sigmoid, or is clipped to 0…1, is refused, also where a Reshape, a Dropout, a pool or a mean
// follows. In flaxlike dice and tversky take such an output alone: of logits they are an error there.
func Named(name string) (Func, error) { return names.Find("loss", name, byName) }

var byName = map[string]Func{
	sparseName:                               sparse,
	"masked_sparse_categorical_crossentropy": masked,
	"categorical_crossentropy":               categorical,
	"binary_crossentropy":                    BinaryCrossEntropy,
	"mean_squared_error":                     SquaredError,
	"mse":                                    SquaredError,
	"mean_absolute_error":                    AbsoluteError,
	"mae":                                    AbsoluteError,
	"huber":                                  Huber,
	"log_cosh":                               LogCosh,
	"mean_absolute_percentage_error":         percentageError,
	"mape":                                   percentageError,
	"mean_squared_logarithmic_error":         squaredLogarithmicError,
	"msle":                                   squaredLogarithmicError,
	"poisson":                                Poisson,
	"cosine_similarity":                      Cosine,
	"hinge":                                  Hinge,
	"squared_hinge":                          squaredHinge,
	"categorical_hinge":                      categoricalHinge,
	"kl_divergence":                          KLDivergence,
	"categorical_focal_crossentropy":         FocalCrossEntropy,
	"binary_focal_crossentropy":              BinaryFocalCrossEntropy,
	"dice":                                   Dice,
	"tversky":                                tversky,
}

// The functions here and not GoMLX's losses: most of those give the mean of the batch, of which neither the padding nor
// a weight can be taken out any more.

const sparseName = "sparse_categorical_crossentropy"

// CrossEntropy is the softmax cross-entropy, in nats, of logits [batch, …, classes] and labels: integers [batch, …], or
// probabilities of the logits' shape. An integer outside 0…classes-1 has the loss NaN, as in optax; its gradient is 0.
// [MaskedMean] makes a loss of those that count: labels outside the mask may have any value.
func CrossEntropy(labels, logits *graph.Node) *graph.Node {
	if labels.DType().IsInt() {
		return sparse(labels, logits)
	}
	return categorical(labels, logits)
}

func sparse(labels, logits *graph.Node) *graph.Node {
	return outputs.CrossEntropies(sparseName, "binary_crossentropy", labels, logits)
}

func masked(labels, logits *graph.Node) *graph.Node {
	const name, instead = "masked_sparse_categorical_crossentropy", "binary_crossentropy, and WithSampleWeights for the mask"
	return MaskedMean(outputs.CrossEntropies(name, instead, labels, logits), outputs.AtLeastZero(labels, logits))
}

// MaskedMean is the mean of the values at which a mask of the same dimensions is true, or 0 if it is true at none. A
// mask of numbers weighs them: it is the sum of the products divided by the sum of the mask, or by 1 where that is
// less. Where the mask is 0 a value may be anything, also a NaN.
//
//	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(labels, logits), mask)) // [batch, time]
func MaskedMean(values, mask *graph.Node) *graph.Node {
	v, m := values.Shape(), mask.Shape()
	if !v.DType.IsFloat() || !v.EqualDimensions(m) {
		panic(fmt.Errorf("MaskedMean: expected floating-point values and a mask of their dimensions, got values %s and mask %s", v, m))
	}
	weights := graph.ConvertDType(mask, v.DType)
	values = graph.Where(graph.NotEqual(weights, graph.ZerosLike(weights)), values, graph.ZerosLike(values))
	return graph.Div(graph.ReduceAllSum(graph.Mul(values, weights)), graph.MaxScalar(graph.ReduceAllSum(weights), 1))
}

// Accuracy is 1 for each label [batch, …] at which the largest of the logits [batch, …, classes] is, and else 0. It is
// no loss, but for Builder.Metric; package metrics has the figure over all batches.
func Accuracy(labels, logits *graph.Node) *graph.Node {
	labels = outputs.Sparse("Accuracy", labels, logits)
	outputs.SeveralClasses("Accuracy", logits, "metrics.Accuracy of metrics.Threshold")
	return graph.ConvertDType(graph.Equal(graph.ArgMax(logits, -1, labels.DType()), labels), dtypes.Float32)
}

func categorical(labels, logits *graph.Node) *graph.Node {
	outputs.SeveralClasses("categorical_crossentropy", logits, "binary_crossentropy")
	outputs.NoProbabilities("categorical_crossentropy", logits)
	labels = outputs.Same("categorical_crossentropy", labels, logits)
	return graph.Neg(graph.ReduceSum(graph.Mul(labels, graph.LogSoftmax(logits)), -1))
}

// KLDivergence is that of labels as probabilities and the softmax of logits.
func KLDivergence(labels, logits *graph.Node) *graph.Node {
	outputs.SeveralClasses("kl_divergence", logits, "binary_crossentropy")
	outputs.NoProbabilities("kl_divergence", logits)
	labels = graph.ClipScalar(outputs.Same("kl_divergence", labels, logits), tiny, 1) // as Keras's: no logarithm of 0
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, 0)
	return graph.ReduceSum(graph.Mul(labels, graph.Sub(graph.Log(labels), log)), -1)
}

// BinaryCrossEntropy is the cross-entropy, in nats, of labels from 0 to 1 and the sigmoid of logits of the same shape:
// max(z, 0) - z y + log(1 + exp(-|z|)), which overflows for no z.
func BinaryCrossEntropy(labels, z *graph.Node) *graph.Node {
	outputs.NoProbabilities("binary_crossentropy", z)
	labels = outputs.Same("binary_crossentropy", labels, z)
	tail := graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z))))
	return graph.Add(graph.Sub(graph.Max(z, graph.ZerosLike(z)), graph.Mul(z, labels)), tail)
}

// SquaredError is the square of the difference, for each number.
func SquaredError(labels, output *graph.Node) *graph.Node {
	return graph.Square(graph.Sub(output, outputs.Same("mean_squared_error", labels, output)))
}

// AbsoluteError is the absolute value of the difference, for each number.
func AbsoluteError(labels, output *graph.Node) *graph.Node {
	return graph.Abs(graph.Sub(outputs.Same("mean_absolute_error", labels, output), output)) // so that its slope at 0 is Keras's
}

// Huber is half the square of a difference of up to 1, and grows linearly beyond it (Huber 1964).
func Huber(labels, output *graph.Node) *graph.Node {
	d := graph.Abs(graph.Sub(output, outputs.Same("huber", labels, output)))
	near := graph.MinScalar(d, 1)
	return graph.Add(graph.MulScalar(graph.Square(near), 0.5), graph.Sub(d, near))
}

// Hinge is 1 less the product of a label, -1 or 1, and the output, where that is above 0.
func Hinge(labels, output *graph.Node) *graph.Node {
	return above0(graph.OneMinus(graph.Mul(output, outputs.Same("hinge", labels, output))))
}

// above0 is x where it is above 0, and else 0. Its slope at 0 is a half, as JAX's.
func above0(x *graph.Node) *graph.Node {
	zero := graph.ScalarZero(x.Graph(), x.DType())
	return graph.Where(graph.Equal(x, zero), graph.MulScalar(x, 0.5), graph.Max(x, zero))
}

func squaredHinge(labels, output *graph.Node) *graph.Node {
	margin := graph.OneMinus(graph.Mul(output, outputs.Same("squared_hinge", labels, output)))
	return graph.Square(graph.Max(margin, graph.ZerosLike(margin)))
}

// categoricalHinge is how far the best of the other classes is above the own one, less 1.
func categoricalHinge(labels, output *graph.Node) *graph.Node {
	outputs.SeveralClasses("categorical_hinge", output, "hinge, with labels -1 or 1")
	labels = outputs.Same("categorical_hinge", labels, output)
	own := graph.ReduceSum(graph.Mul(labels, output), -1)
	others := graph.Mul(graph.OneMinus(labels), output)
	best := graph.StopGradient(graph.ReduceAndKeep(others, graph.ReduceMax, -1))
	equals := graph.Equal(others, best) // they share the slope, as in JAX
	off := graph.ReduceSum(graph.Where(equals, graph.Sub(others, best), graph.ZerosLike(others)), -1)
	shared := graph.Div(off, graph.ReduceSum(graph.ConvertDType(equals, output.DType()), -1))
	return above0(graph.AddScalar(graph.Sub(graph.Add(graph.Squeeze(best, -1), shared), own), 1))
}

// In the focal losses a probability is at least 1e-7 and at most 1 less float32's step below 1, as Keras's: beyond
// these a logit has no slope.
const (
	leastLog = -16.118095650958319 // ln(1e-7)
	mostLog  = -1.1920929665620834e-07
)

// FocalCrossEntropy is the cross-entropy of labels as probabilities and logits, multiplied by 0.25 and by the square of
// what the probability of a class lacks to 1, so that easy examples count less (Lin et al. 2017).
func FocalCrossEntropy(labels, logits *graph.Node) *graph.Node {
	const name, alpha = "categorical_focal_crossentropy", 0.25
	outputs.SeveralClasses(name, logits, "binary_focal_crossentropy")
	outputs.NoProbabilities(name, logits)
	labels = outputs.Same(name, labels, logits)
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, mostLog)
	each := graph.Mul(graph.Square(graph.OneMinus(graph.Exp(log))), graph.Mul(labels, log))
	return graph.MulScalar(graph.ReduceSum(each, -1), -alpha)
}

// BinaryFocalCrossEntropy is [BinaryCrossEntropy], multiplied by the square of what the probability lacks to its
// label.
func BinaryFocalCrossEntropy(labels, z *graph.Node) *graph.Node {
	outputs.NoProbabilities("binary_focal_crossentropy", z)
	labels = outputs.Same("binary_focal_crossentropy", labels, z)
	p := graph.Sigmoid(z)
	lacks := graph.Add(graph.Mul(labels, graph.OneMinus(p)), graph.Mul(graph.OneMinus(labels), p))
	one := graph.ClipScalar(graph.Neg(softPlus(graph.Neg(z))), leastLog, mostLog) // the logarithm of p
	zero := graph.ClipScalar(graph.Neg(softPlus(z)), -15.942385152878742, -tiny)
	return graph.Neg(graph.Mul(graph.Square(lacks), graph.Add(graph.Mul(labels, one), graph.Mul(graph.OneMinus(labels), zero))))
}

// softPlus is log(1 + exp(z)), which overflows for no z.
func softPlus(z *graph.Node) *graph.Node {
	return graph.Add(graph.Max(z, graph.ZerosLike(z)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z)))))
}

// Poisson is that of counts and an expected count above 0, less what does not depend on the output.
func Poisson(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("poisson", labels, output)
	return graph.Sub(output, graph.Mul(labels, graph.Log(graph.AddScalar(output, tiny))))
}

// LogCosh is the logarithm of the hyperbolic cosine of the difference: d + softplus(-2d) - log(2), which
// overflows for no d.
func LogCosh(labels, output *graph.Node) *graph.Node {
	d := graph.Abs(graph.Sub(output, outputs.Same("log_cosh", labels, output)))
	return graph.AddScalar(graph.Add(d, graph.Log1P(graph.Exp(graph.MulScalar(d, -2)))), -math.Ln2)
}

func percentageError(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("mean_absolute_percentage_error", labels, output)
	share := graph.Div(graph.Abs(graph.Sub(labels, output)), graph.MaxScalar(graph.Abs(labels), tiny))
	return graph.MulScalar(share, 100)
}

func squaredLogarithmicError(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("mean_squared_logarithmic_error", labels, output)
	log := func(x *graph.Node) *graph.Node { return graph.Log1P(graph.MaxScalar(x, tiny)) }
	return graph.Square(graph.Sub(log(output), log(labels)))
}

// Cosine is minus the cosine of the angle between two vectors; that with a vector of zeros is 0.
func Cosine(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("cosine_similarity", labels, output)
	if output.Rank() < 2 || outputs.Classes(output) < 2 {
		panic(fmt.Errorf("cosine_similarity: the output %s has one number an example, whose cosine is 1 or -1 whatever its size: "+
			"expected vectors [batch, …, n], with n of two or more; of one number take mean_squared_error", output.Shape()))
	}
	unit := func(x *graph.Node) *graph.Node {
		return graph.Div(x, graph.Sqrt(graph.MaxScalar(graph.ReduceAndKeep(graph.Square(x), graph.ReduceSum, -1), tiny*tiny)))
	}
	return graph.Neg(graph.ReduceSum(graph.Mul(unit(labels), unit(output)), -1))
}

// Dice is 1 less twice what labels and probabilities share, of what they have together in the whole batch: a scalar
// (Milletari et al. 2016).
func Dice(labels, output *graph.Node) *graph.Node { return overlap("dice", labels, output) }

// tversky is [Dice] with weights for false positives and false negatives, which are equal here (Salehi et al. 2017).
func tversky(labels, output *graph.Node) *graph.Node { return overlap("tversky", labels, output) }

func overlap(name string, labels, output *graph.Node) *graph.Node {
	labels = outputs.Same(name, labels, output)
	both := graph.ReduceAllSum(graph.Mul(labels, output))
	all := graph.Add(graph.ReduceAllSum(labels), graph.ReduceAllSum(output))
	return graph.OneMinus(graph.Div(graph.MulScalar(both, 2), graph.AddScalar(all, tiny)))
}

// tiny keeps logarithms and quotients finite: Keras's epsilon, in its places.
const tiny = 1e-7
