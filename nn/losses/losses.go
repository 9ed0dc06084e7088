package losses

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/lazo-ml/lazo/internal/autodiff" // right gradients
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/internal/outputs"
)

// Func is a loss: it returns a value per example, [batch, …], or a scalar for the whole batch.
type Func func(labels, output *graph.Node) *graph.Node

// Named returns a loss by Keras's name, or a short one:
//
//	sparse_categorical_crossentropy   integer labels [batch, …] and logits [batch, …, classes], in nats
//	masked_sparse_categorical_crossentropy  the same: the mean over labels not below 0, 0 if none
//	categorical_crossentropy          labels as probabilities of the logits' shape
//	binary_crossentropy               labels 0 or 1 and logits, of one shape
//	mean_squared_error, mse           labels and output of one shape
//	mean_absolute_error, mae
//	huber                             squared up to an error of Delta, then linear (Huber 1964)
//	log_cosh                          as huber, and smooth
//	mean_absolute_percentage_error, mape  in percent of the labels
//	mean_squared_logarithmic_error, msle  of 1 + labels and 1 + output
//	poisson                           labels as counts, output as the expected count, above 0
//	cosine_similarity                 minus the cosine of vectors along the last axis
//	hinge, squared_hinge              labels -1 or 1
//	categorical_hinge                 labels one-hot
//	kl_divergence                     labels as probabilities, output as logits
//	ctc                               [CTC]
//	categorical_focal_crossentropy    as categorical_crossentropy, with Gamma and Alpha (Lin et al. 2017)
//	binary_focal_crossentropy         as binary_crossentropy, with Gamma, and Alpha if given
//	dice, tversky                     labels 0 or 1 and probabilities, of one shape, for the whole batch;
//	                                  tversky's weights are 0.5
//
// The crossentropies refuse an output of softmax, sigmoid or a clip to [0, 1], also before a Reshape, a Dropout, a
// pool or a mean. In flaxlike, dice and tversky refuse logits.
//
// Settings, at most one, has numbers of the losses that its fields name.
func Named(name string, settings ...Settings) (Func, error) {
	f, err := names.Find("loss", name, byName)
	if err != nil || len(settings) == 0 {
		return f, err
	}
	s := settings[0]
	for _, of := range []struct {
		name  string
		value float64
		takes bool
	}{
		{"Delta", s.Delta, name == huber},
		{"Gamma", s.Gamma, name == focal || name == binaryFocal},
		{"Alpha", s.Alpha, name == focal || name == binaryFocal},
	} {
		switch {
		case of.value != 0 && !of.takes:
			return nil, fmt.Errorf("loss %q: %s is %g, and this loss does not have it: expected 0", name, of.name, of.value)
		case !(of.value >= 0) || math.IsInf(of.value, 0):
			return nil, fmt.Errorf("loss %q: %s is %g, expected a positive, finite number, or 0 for the default", name, of.name, of.value)
		}
	}
	switch {
	case len(settings) > 1:
		return nil, fmt.Errorf("loss %q: %d settings given, expected at most one", name, len(settings))
	case name == binaryFocal && s.Alpha > 1:
		return nil, fmt.Errorf("loss %q: Alpha is %g, expected a share up to 1", name, s.Alpha)
	case s == Settings{}:
		return f, nil
	case name == huber:
		return s.huber, nil
	case name == focal:
		return s.focal, nil
	}
	return s.binaryFocal, nil
}

// Settings are numbers of losses; 0 is the default.
type Settings struct {
	// Delta is the error from which huber is linear. Default 1.
	Delta float64
	// Gamma is the exponent of 1 minus the label's probability in the focal losses. Default 2. For 0, give 1e-30.
	Gamma float64
	// Alpha is a factor of categorical_focal_crossentropy, default 0.25. In binary_focal_crossentropy it is the
	// weight of label 1, 1 - Alpha that of label 0 (Keras's apply_class_balancing); by default both are 1.
	Alpha float64
}

const (
	huber       = "huber"
	focal       = "categorical_focal_crossentropy"
	binaryFocal = "binary_focal_crossentropy"
)

var byName = map[string]Func{
	sparseName:                               sparse,
	"masked_sparse_categorical_crossentropy": masked,
	"categorical_crossentropy":               categorical,
	"binary_crossentropy":                    BinaryCrossEntropy,
	"mean_squared_error":                     SquaredError,
	"mse":                                    SquaredError,
	"mean_absolute_error":                    AbsoluteError,
	"mae":                                    AbsoluteError,
	huber:                                    Huber,
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
	ctc:                                      CTC,
	focal:                                    FocalCrossEntropy,
	binaryFocal:                              BinaryFocalCrossEntropy,
	"dice":                                   Dice,
	"tversky":                                tversky,
}

// GoMLX's losses mostly return the mean, which cannot exclude padding or apply weights.

const sparseName = "sparse_categorical_crossentropy"

// CrossEntropy is the softmax cross-entropy, in nats, of logits [batch, …, classes] and labels: integers [batch, …],
// or probabilities of the logits' shape. An integer outside [0, classes) has the loss NaN, as in optax, and the
// gradient 0. [MaskedMean] excludes labels.
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

// MaskedMean is the mean of the values where mask, of the same dimensions, is true, or 0 if nowhere. With a numeric
// mask it is the weighted sum divided by the larger of 1 and the weights' sum. Where the mask is 0 a value may be NaN.
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

// Accuracy is 1 for each label [batch, …] that is the argmax of the logits [batch, …, classes], else 0, for
// Builder.Metric.
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

// KLDivergence is the divergence of the softmax of logits from labels, probabilities.
func KLDivergence(labels, logits *graph.Node) *graph.Node {
	outputs.SeveralClasses("kl_divergence", logits, "binary_crossentropy")
	outputs.NoProbabilities("kl_divergence", logits)
	labels = graph.ClipScalar(outputs.Same("kl_divergence", labels, logits), tiny, 1) // as in Keras: avoids log(0)
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, 0)
	return graph.ReduceSum(graph.Mul(labels, graph.Sub(graph.Log(labels), log)), -1)
}

// BinaryCrossEntropy is the cross-entropy, in nats, of labels in [0, 1] and the sigmoid of logits of the same shape,
// computed without overflow as max(z, 0) - z·y + log(1 + exp(-|z|)). For other labels the loss is NaN and the gradient
// 0.
func BinaryCrossEntropy(labels, z *graph.Node) *graph.Node {
	outputs.NoProbabilities("binary_crossentropy", z)
	labels = outputs.Same("binary_crossentropy", labels, z)
	tail := graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z))))
	return binary(labels, graph.Add(graph.Sub(graph.Max(z, graph.ZerosLike(z)), graph.Mul(z, labels)), tail))
}

func binary(labels, losses *graph.Node) *graph.Node {
	within := graph.LogicalAnd(graph.GreaterOrEqual(labels, graph.ZerosLike(labels)), graph.LessOrEqual(labels, graph.OnesLike(labels)))
	return outputs.OrNaN(within, losses)
}

// SquaredError is the squared difference of each element.
func SquaredError(labels, output *graph.Node) *graph.Node {
	return graph.Square(graph.Sub(output, outputs.Same("mean_squared_error", labels, output)))
}

// AbsoluteError is the absolute difference of each element.
func AbsoluteError(labels, output *graph.Node) *graph.Node {
	return graph.Abs(graph.Sub(outputs.Same("mean_absolute_error", labels, output), output)) // this order gives Keras's slope at 0
}

// Huber is half the squared difference up to 1, and linear beyond it (Huber 1964). [Settings] has another Delta.
func Huber(labels, output *graph.Node) *graph.Node { return Settings{}.huber(labels, output) }

func (s Settings) huber(labels, output *graph.Node) *graph.Node {
	delta := cmp.Or(s.Delta, 1)
	d := graph.Abs(graph.Sub(output, outputs.Same(huber, labels, output)))
	near := graph.MinScalar(d, delta)
	return graph.Add(graph.MulScalar(graph.Square(near), 0.5), graph.MulScalar(graph.Sub(d, near), delta))
}

// Hinge is max(0, 1 - label·output), for labels -1 or 1.
func Hinge(labels, output *graph.Node) *graph.Node {
	return above0(graph.OneMinus(graph.Mul(output, outputs.Same("hinge", labels, output))))
}

// above0 is max(x, 0). Its slope at 0 is ½, as in JAX.
func above0(x *graph.Node) *graph.Node {
	zero := graph.ScalarZero(x.Graph(), x.DType())
	return graph.Where(graph.Equal(x, zero), graph.MulScalar(x, 0.5), graph.Max(x, zero))
}

func squaredHinge(labels, output *graph.Node) *graph.Node {
	margin := graph.OneMinus(graph.Mul(output, outputs.Same("squared_hinge", labels, output)))
	return graph.Square(graph.Max(margin, graph.ZerosLike(margin)))
}

func categoricalHinge(labels, output *graph.Node) *graph.Node {
	outputs.SeveralClasses("categorical_hinge", output, "hinge, with labels -1 or 1")
	labels = outputs.Same("categorical_hinge", labels, output)
	own := graph.ReduceSum(graph.Mul(labels, output), -1)
	others := graph.Mul(graph.OneMinus(labels), output)
	best := graph.StopGradient(graph.ReduceAndKeep(others, graph.ReduceMax, -1))
	equals := graph.Equal(others, best) // ties share the slope, as in JAX
	off := graph.ReduceSum(graph.Where(equals, graph.Sub(others, best), graph.ZerosLike(others)), -1)
	shared := graph.Div(off, graph.ReduceSum(graph.ConvertDType(equals, output.DType()), -1))
	return above0(graph.AddScalar(graph.Sub(graph.Add(graph.Squeeze(best, -1), shared), own), 1))
}

// The focal losses clip probabilities to [1e-7, 1 - float32's epsilon], as Keras. The slope outside is 0.
const (
	leastLog = -16.118095650958319 // ln(1e-7)
	mostLog  = -1.1920929665620834e-07
)

// FocalCrossEntropy is the cross-entropy of labels, as probabilities, and logits times 0.25·(1-p)² (Lin et al. 2017).
// [Settings] has another exponent and factor.
func FocalCrossEntropy(labels, logits *graph.Node) *graph.Node {
	return Settings{}.focal(labels, logits)
}

func (s Settings) focal(labels, logits *graph.Node) *graph.Node {
	outputs.SeveralClasses(focal, logits, binaryFocal)
	outputs.NoProbabilities(focal, logits)
	labels = outputs.Same(focal, labels, logits)
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, mostLog)
	each := graph.Mul(s.modulating(graph.OneMinus(graph.Exp(log))), graph.Mul(labels, log))
	return graph.MulScalar(graph.ReduceSum(each, -1), -cmp.Or(s.Alpha, 0.25))
}

// modulating is lacks^Gamma. Its slope below [tiny] is 0: an exponent below 1 has an infinite one.
func (s Settings) modulating(lacks *graph.Node) *graph.Node {
	if s.Gamma == 0 || s.Gamma == 2 {
		return graph.Square(lacks)
	}
	return graph.Pow(graph.MaxScalar(lacks, tiny), graph.Scalar(lacks.Graph(), lacks.DType(), s.Gamma))
}

// BinaryFocalCrossEntropy is [BinaryCrossEntropy] times the square of 1 minus the label's probability. [Settings] has
// another exponent, and weights of the labels.
func BinaryFocalCrossEntropy(labels, z *graph.Node) *graph.Node {
	return Settings{}.binaryFocal(labels, z)
}

func (s Settings) binaryFocal(labels, z *graph.Node) *graph.Node {
	outputs.NoProbabilities(binaryFocal, z)
	labels = outputs.Same(binaryFocal, labels, z)
	p := graph.Sigmoid(z)
	lacks := graph.Add(graph.Mul(labels, graph.OneMinus(p)), graph.Mul(graph.OneMinus(labels), p))
	one := graph.ClipScalar(graph.Neg(softPlus(graph.Neg(z))), leastLog, mostLog) // log p
	zero := graph.ClipScalar(graph.Neg(softPlus(z)), -15.942385152878742, -tiny)
	if s.Alpha != 0 {
		one, zero = graph.MulScalar(one, s.Alpha), graph.MulScalar(zero, 1-s.Alpha)
	}
	return binary(labels, graph.Neg(graph.Mul(s.modulating(lacks), graph.Add(graph.Mul(labels, one), graph.Mul(graph.OneMinus(labels), zero)))))
}

func softPlus(z *graph.Node) *graph.Node {
	return graph.Add(graph.Max(z, graph.ZerosLike(z)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z)))))
}

// Poisson is the Poisson loss of counts and an expected count above 0, without the term constant in the output.
func Poisson(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("poisson", labels, output)
	return graph.Sub(output, graph.Mul(labels, graph.Log(graph.AddScalar(output, tiny))))
}

// LogCosh is the logarithm of the hyperbolic cosine of the difference, without overflow as d + softplus(-2d) - log(2).
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

// Cosine is minus the cosine of the angle between two vectors, or 0 if one is zero.
func Cosine(labels, output *graph.Node) *graph.Node {
	labels = outputs.Same("cosine_similarity", labels, output)
	if output.Rank() < 2 || outputs.Classes(output) < 2 {
		panic(fmt.Errorf("cosine_similarity: the output %s has one number an example, whose cosine is 1 or -1 whatever its size: "+
			"expected vectors [batch, …, n], with n of two or more; for one number use mean_squared_error", output.Shape()))
	}
	unit := func(x *graph.Node) *graph.Node {
		return graph.Div(x, graph.Sqrt(graph.MaxScalar(graph.ReduceAndKeep(graph.Square(x), graph.ReduceSum, -1), tiny*tiny)))
	}
	return graph.Neg(graph.ReduceSum(graph.Mul(unit(labels), unit(output)), -1))
}

// Dice is 1 minus twice the overlap of labels and probabilities divided by their sum, of the whole batch: a scalar
// (Milletari et al. 2016).
func Dice(labels, output *graph.Node) *graph.Node { return overlap("dice", labels, output) }

func tversky(labels, output *graph.Node) *graph.Node { return overlap("tversky", labels, output) }

func overlap(name string, labels, output *graph.Node) *graph.Node {
	labels = outputs.Same(name, labels, output)
	both := graph.ReduceAllSum(graph.Mul(labels, output))
	all := graph.Add(graph.ReduceAllSum(labels), graph.ReduceAllSum(output))
	return graph.OneMinus(graph.Div(graph.MulScalar(both, 2), graph.AddScalar(all, tiny)))
}

// tiny is Keras's epsilon, for finite logarithms and quotients.
const tiny = 1e-7
