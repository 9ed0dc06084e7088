package flaxlike

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
)

// LossFunc is a loss: from the labels and an output to a value for each example, [batch, …]; all axes but the first are
// averaged. A scalar is taken as it is; it cannot be weighed. Evaluate gives a model that has one no padding, but a
// smaller last batch.
type LossFunc func(labels, output *managed.Node) *managed.Node

// Loss is a loss of a model. Only a Name that [LossByName] knows, or a Func, is needed.
type Loss struct {
	// Name is that of the loss; of several, with a Func, it is the name under which it is logged. The only one is
	// logged as loss.
	Name string
	Func LossFunc
	// Output is the output that is judged, and Label the field that has what it should be. A model of one output needs
	// neither: the field is "y" then. Of several outputs, each has the field of its own name.
	Output, Label string
	// Weight multiplies the loss in the sum of all; 0 stands for 1, as a field that is not set; Off
	// leaves the loss out.
	Weight float64
	// Off leaves the loss out of the sum: it is logged and trains nothing.
	Off bool
	// Smoothing takes that share of each label and spreads it over all classes evenly, while training and in tests
	// (Szegedy et al. 2016): from 0 to below 1, for crossentropies by Name, but for the masked one.
	Smoothing float64
}

// smoothing are the losses by name that have it, and whether each number of the output is two classes.
var smoothing = map[string]bool{"sparse_categorical_crossentropy": false, "categorical_crossentropy": false, "categorical_focal_crossentropy": false,
	"binary_crossentropy": true, "binary_focal_crossentropy": true}

// check finds settings that no loss has.
func (l Loss) check() error {
	if l.Func == nil {
		if _, err := LossByName(l.Name); err != nil {
			return err
		}
	}
	_, smooths := smoothing[l.Name]
	switch {
	case l.Weight < 0 || math.IsNaN(l.Weight) || math.IsInf(l.Weight, 0):
		return fmt.Errorf("loss %q: the weight is %v, expected a finite number of at least 0", l.Name, l.Weight)
	case l.Off && l.Weight != 0:
		return fmt.Errorf("loss %q: it is Off and has the weight %v, expected one of them", l.Name, l.Weight)
	case !(l.Smoothing >= 0 && l.Smoothing < 1): // also NaN
		return fmt.Errorf("loss %q: the smoothing is %v, expected a share from 0 to below 1", l.Name, l.Smoothing)
	case l.Smoothing > 0 && (l.Func != nil || !smooths):
		return fmt.Errorf("loss %q: it has no smoothing, expected it of one of %q by Name", l.Name, slices.Sorted(maps.Keys(smoothing)))
	}
	return nil
}

// byName is the loss that Name says, with its Smoothing.
func (l Loss) byName() LossFunc {
	f, _ := LossByName(l.Name) // which New has checked
	if l.Smoothing == 0 {
		return f
	}
	return func(labels, output *managed.Node) *managed.Node {
		if l.Name == "sparse_categorical_crossentropy" {
			even := graph.Neg(graph.ReduceMean(graph.LogSoftmax(output), -1))
			return graph.Add(graph.MulScalar(f(labels, output), 1-l.Smoothing), graph.MulScalar(even, l.Smoothing))
		}
		classes := 2
		if !smoothing[l.Name] {
			severalClasses(l.Name, output, "binary_crossentropy")
			classes = classesOf(output)
		}
		labels = same(l.Name, labels, output)
		return f(graph.AddScalar(graph.MulScalar(labels, 1-l.Smoothing), l.Smoothing/float64(classes)), output)
	}
}

// logged is the name in the logs: "loss" where it is the only one, and else "<output>_loss".
func (l Loss) logged(single bool) string {
	switch {
	case single:
		return trained
	case l.Func != nil && l.Name != "":
		return l.Name
	case l.Output != "":
		return l.Output + "_loss"
	case l.Name != "":
		return l.Name
	}
	return "loss"
}

// LossByName gives a loss by Keras's name, or a short one:
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
// through softmax or sigmoid is refused, also where a Reshape, a Dropout, a pool, a mean or a clip stands behind it.
func LossByName(name string) (LossFunc, error) { return find("loss", name, lossesByName) }

var lossesByName = map[string]LossFunc{
	"sparse_categorical_crossentropy": sparseCrossEntropy,
	maskedSparse:                      ofBatch(maskedOf).unmasked,
	"categorical_crossentropy":        crossEntropy,
	"binary_crossentropy":             binaryCrossEntropy,
	"mean_squared_error":              squaredError,
	"mse":                             squaredError,
	"mean_absolute_error":             absoluteError,
	"mae":                             absoluteError,
	"huber":                           huber,
	"log_cosh":                        logCosh,
	"mean_absolute_percentage_error":  percentageError,
	"mape":                            percentageError,
	"mean_squared_logarithmic_error":  squaredLogarithmicError,
	"msle":                            squaredLogarithmicError,
	"poisson":                         poisson,
	"cosine_similarity":               cosine,
	"hinge":                           hinge,
	"squared_hinge":                   squaredHinge,
	"categorical_hinge":               categoricalHinge,
	"kl_divergence":                   divergence,
	"categorical_focal_crossentropy":  focalCrossEntropy,
	"binary_focal_crossentropy":       binaryFocalCrossEntropy,
	"dice":                            ofBatch(dice).unmasked,
	"tversky":                         ofBatch(tversky).unmasked,
}

// The functions here and not GoMLX's losses: most of those give the mean of the batch, of which neither the padding nor
// a weight can be taken out any more.

func sparseCrossEntropy(labels, logits *managed.Node) *managed.Node {
	return sparseCrossEntropies("sparse_categorical_crossentropy", labels, logits)
}

func sparseCrossEntropies(name string, labels, logits *managed.Node) *managed.Node {
	instead := "binary_crossentropy"
	if name == maskedSparse {
		instead += ", and WithSampleWeights for the mask"
	}
	severalClasses(name, logits, instead)
	noProbabilities(name, logits)
	return managed.CrossEntropies(sparse(name, labels, logits), logits)
}

const maskedSparse = "masked_sparse_categorical_crossentropy"

// maskedOf has for each example its share of the batch's mean over the labels that count, so that the mean over the
// examples is that one.
func maskedOf(labels, logits, examples *managed.Node) *managed.Node {
	return counted(maskedSparse, sparseCrossEntropies(maskedSparse, labels, logits), atLeastZero(labels, logits), examples)
}

// atLeastZero is where labels, which may have a last axis of 1, are not below 0.
func atLeastZero(labels, logits *managed.Node) *managed.Node {
	if labels.Rank() == logits.Rank() && labels.Rank() > 1 {
		labels = graph.Squeeze(labels, -1)
	}
	return graph.GreaterOrEqual(labels, graph.ZerosLike(labels))
}

// sparse are integer labels, without a last axis of 1.
func sparse(name string, labels, logits *managed.Node) *managed.Node {
	l, o := labels.Shape(), logits.Shape()
	if !l.DType.IsInt() {
		panic(fmt.Errorf("%s: the labels are %s, expected integers, as []int32 (of probabilities, categorical_crossentropy)", name, l))
	}
	if l.Rank() > 1 && l.Rank() == o.Rank() && l.Dimensions[l.Rank()-1] == 1 {
		labels = graph.Squeeze(labels, -1)
		l = labels.Shape()
	}
	fits := l.Rank() == o.Rank()-1
	for i := 0; fits && i < l.Rank(); i++ {
		fits = l.Dimensions[i] == o.Dimensions[i]
	}
	if !fits || !o.DType.IsFloat() {
		hint := ""
		if l.Rank() == 1 && o.Rank() > 2 {
			hint = "\n  put Flatten() before the first Dense, or end with GlobalMeanPool()"
		}
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected integers [batch] and floats [batch, classes]%s", name, l, o, hint))
	}
	return labels
}

func classesOf(logits *managed.Node) int { return logits.Shape().Dimensions[logits.Rank()-1] }

func crossEntropy(labels, logits *managed.Node) *managed.Node {
	severalClasses("categorical_crossentropy", logits, "binary_crossentropy")
	noProbabilities("categorical_crossentropy", logits)
	labels = same("categorical_crossentropy", labels, logits)
	return graph.Neg(graph.ReduceSum(graph.Mul(labels, graph.LogSoftmax(logits)), -1))
}

func divergence(labels, logits *managed.Node) *managed.Node {
	severalClasses("kl_divergence", logits, "binary_crossentropy")
	noProbabilities("kl_divergence", logits)
	labels = graph.ClipScalar(same("kl_divergence", labels, logits), tiny, 1) // as Keras's: no logarithm of 0
	log := graph.ClipScalar(graph.LogSoftmax(logits), leastLog, 0)
	return graph.ReduceSum(graph.Mul(labels, graph.Sub(graph.Log(labels), log)), -1)
}

// binaryCrossEntropy is max(z, 0) - z y + log(1 + exp(-|z|)), which overflows for no z.
func binaryCrossEntropy(labels, z *managed.Node) *managed.Node {
	noProbabilities("binary_crossentropy", z)
	labels = same("binary_crossentropy", labels, z)
	tail := graph.Log1P(graph.Exp(graph.Neg(graph.Abs(z))))
	return graph.Add(graph.Sub(graph.Max(z, graph.ZerosLike(z)), graph.Mul(z, labels)), tail)
}

func squaredError(labels, output *managed.Node) *managed.Node {
	return graph.Square(graph.Sub(output, same("mean_squared_error", labels, output)))
}

func absoluteError(labels, output *managed.Node) *managed.Node {
	return graph.Abs(graph.Sub(same("mean_absolute_error", labels, output), output)) // so that its slope at 0 is Keras's
}

func huber(labels, output *managed.Node) *managed.Node {
	d := graph.Abs(graph.Sub(output, same("huber", labels, output)))
	near := graph.MinScalar(d, 1)
	return graph.Add(graph.MulScalar(graph.Square(near), 0.5), graph.Sub(d, near))
}

func hinge(labels, output *managed.Node) *managed.Node {
	return above0(graph.OneMinus(graph.Mul(output, same("hinge", labels, output))))
}

// above0 is x where it is above 0, and else 0. Its slope at 0 is a half, as JAX's.
func above0(x *managed.Node) *managed.Node {
	zero := graph.ScalarZero(x.Graph(), x.DType())
	return graph.Where(graph.Equal(x, zero), graph.MulScalar(x, 0.5), graph.Max(x, zero))
}

// same are labels of the output's dimensions, in its type.
func same(name string, labels, output *managed.Node) *managed.Node {
	l, o := labels.Shape(), output.Shape()
	if o.Rank() == l.Rank()+1 && o.Dimensions[l.Rank()] == 1 { // [batch] for [batch, 1]: broadcast it would be [batch, batch]
		labels = graph.ExpandAxes(labels, -1)
		l = labels.Shape()
	}
	if !o.DType.IsFloat() || !l.EqualDimensions(o) {
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected one shape, and the output in floats", name, l, o))
	}
	return graph.ConvertDType(labels, o.DType)
}

// noProbabilities refuses what a softmax or a sigmoid has made.
func noProbabilities(name string, output *managed.Node) {
	if made := madeBy(output); made != "" {
		panic(fmt.Errorf("%s: the output went through a %s, expected logits: take that layer off; the loss has it in it", name, made))
	}
}

// madeBy is what made probabilities of an output, "" if it has none. It looks behind what keeps them probabilities, as
// a Reshape, a Dropout, a pool or a mean, and behind nothing else: a softmax that is multiplied or added, as in
// attention or a gate, makes logits.
func madeBy(output *managed.Node) string {
	left := 1000 // nodes to look at, for paths may fork
	var of func(x *managed.Node) string
	all := func(list []*managed.Node) (made string) { // of all that are not fixed numbers
		for _, x := range list {
			if fixedNumbers(x, 6) {
				continue
			}
			if made = of(x); made == "" {
				return ""
			}
		}
		return made
	}
	of = func(x *managed.Node) string {
		if left--; left < 0 {
			return ""
		}
		in := x.Inputs()
		switch x.Type() {
		case graph.NodeTypeLogistic:
			return "sigmoid"
		case graph.NodeTypeFusedSoftmax:
			return "softmax"
		case graph.NodeTypeReshape, graph.NodeTypeTranspose, graph.NodeTypeConvertDType, graph.NodeTypeIdentity, graph.NodeTypeBroadcastInDim,
			graph.NodeTypeSlice, graph.NodeTypeDynamicSlice, graph.NodeTypeGather, graph.NodeTypeReverse, graph.NodeTypePad,
			graph.NodeTypeOptimizationBarrier, graph.NodeTypeReduceMax, graph.NodeTypeReduceMin, graph.NodeTypeReduceWindow:
			return of(in[0])
		case graph.NodeTypeClamp:
			return of(in[1])
		case graph.NodeTypeMax, graph.NodeTypeMin, graph.NodeTypeConcatenate:
			return all(in)
		case graph.NodeTypeWhere:
			return all(in[1:])
		case graph.NodeTypeMul, graph.NodeTypeDiv:
			sum := in[0]
			if x.Type() == graph.NodeTypeDiv && sum.Type() == graph.NodeTypeExp {
				return "softmax"
			}
			if !fixedNumbers(in[1], 6) {
				return ""
			}
			switch sum.Type() { // a mean, or what Dropout scales up; what scales a sigmoid itself makes logits of a range
			case graph.NodeTypeReduceSum:
				return of(sum.Inputs()[0])
			case graph.NodeTypeReduceWindow, graph.NodeTypeWhere:
				return of(sum)
			}
		}
		return ""
	}
	return of(output)
}

// fixedNumbers tells, by a few steps back, whether a node is made of constants.
func fixedNumbers(x *managed.Node, steps int) bool {
	if x.Type() == graph.NodeTypeConstant || x.Type() == graph.NodeTypeIota {
		return true
	}
	in := x.Inputs()
	return steps > 0 && len(in) > 0 && !slices.ContainsFunc(in, func(n *managed.Node) bool { return !fixedNumbers(n, steps-1) })
}
