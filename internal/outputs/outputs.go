// Package outputs looks at the outputs of a model and their labels: what losses and metrics have in common.
package outputs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Node is a value of a graph.
type Node = graph.Node

// Classes is how many classes an output of several numbers an example has.
func Classes(logits *Node) int { return logits.Shape().Dimensions[logits.Rank()-1] }

// SeveralClasses refuses a loss of classes for an output of one number: its softmax is always 1.
func SeveralClasses(what string, output *Node, instead string) {
	if output.Rank() < 2 || Classes(output) < 2 {
		panic(fmt.Errorf("%s: the output %s has one class, whose probability is always 1: expected [batch, …, classes], with two or more; of one logit take %s",
			what, output.Shape(), instead))
	}
}

// Same are labels of the output's dimensions, in its type.
func Same(name string, labels, output *Node) *Node {
	l, o := labels.Shape(), output.Shape()
	if o.Rank() == l.Rank()+1 && o.Dimensions[l.Rank()] == 1 { // [batch] for [batch, 1]: broadcast it would be [batch, batch]
		labels = graph.ExpandAxes(labels, -1)
		l = labels.Shape()
	}
	if !o.DType.IsFloat() || !l.EqualDimensions(o) {
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected one shape, and the output in floats%s", name, l, o, instead(name, labels, output)))
	}
	return graph.ConvertDType(labels, o.DType)
}

// instead says what to do with labels of one number for an output of several.
func instead(name string, labels, output *Node) string {
	l, o := labels.Shape(), output.Shape()
	single := l.Rank() == o.Rank()-1 || l.Rank() == o.Rank() && l.Rank() > 1 && Classes(labels) == 1
	switch {
	case !single || o.Rank() < 2 || Classes(output) < 2 || !o.DType.IsFloat():
		return ""
	case strings.HasPrefix(name, "binary"):
		return "\n  of two classes take one logit: end the network with nn.Dense{Units: 1}; or keep the output, and take sparse_categorical_crossentropy, " +
			"whose labels are integers"
	case strings.HasPrefix(name, "categorical") && l.DType.IsInt():
		return "\n  of labels that are numbers of classes take sparse_categorical_crossentropy, or make rows of them by data.OneHot"
	case l.DType.IsInt():
		return "\n  of labels that are numbers of classes take sparse_categorical_crossentropy; of labels that are quantities take an output of one number: " +
			"end the network with nn.Dense{Units: 1}"
	}
	return ""
}

// Sparse are integer labels, without a last axis of 1.
func Sparse(name string, labels, logits *Node) *Node {
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
			hint = "\n  of images, put Flatten() before the first Dense; of sequences, take the state after the last place (Last of nn.LSTM " +
				"and its like), or put GlobalMeanPool() before the last Dense"
		}
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected integers [batch] and floats [batch, classes]%s", name, l, o, hint))
	}
	if labels.DType().Size() < 4 { // which need not hold all classes: of 300, uint8 would make class 256 class 0
		labels = graph.ConvertDType(labels, dtypes.Int32)
	}
	return labels
}

// NoProbabilities refuses what a softmax or a sigmoid has made.
func NoProbabilities(name string, output *Node) {
	made := MadeBy(output)
	if made == "" && From0To1(output) {
		made = "function from 0 to 1"
	}
	if made != "" {
		panic(fmt.Errorf("%s: the output went through a %s, expected logits: take that layer off; the loss has it in it", name, made))
	}
}

// From0To1 reports whether the graph shows that no number of an output is below 0 or above 1, as after a sigmoid, a
// softmax or a clip.
func From0To1(output *Node) bool {
	low, high := bounds(output, 12)
	return MadeBy(output) != "" || low >= -1e-6 && high <= 1+1e-6 // by the rounding of a factor
}

// Infinite tells whether a node is an infinite number.
func Infinite(x *Node) bool {
	low, high := bounds(x, 12)
	return low == high && math.IsInf(low, 0)
}

// bounds are a number that no element is below and one that none is above, as far as a few operations show.
func bounds(x *Node, steps int) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	of := func(i int) (float64, float64) { return bounds(x.Inputs()[i], steps-1) }
	if steps == 0 {
		return low, high
	}
	switch x.Type() {
	case graph.NodeTypeConstant:
		if value := x.ConstantValue(); value != nil && x.IsScalar() && x.DType().IsFloat() {
			v := reflect.ValueOf(value.Value())
			if v.CanFloat() {
				return v.Float(), v.Float()
			}
		}
	case graph.NodeTypeLogistic, graph.NodeTypeFusedSoftmax:
		return 0, 1
	case graph.NodeTypeReshape, graph.NodeTypeTranspose, graph.NodeTypeConvertDType, graph.NodeTypeIdentity, graph.NodeTypeBroadcastInDim:
		return of(0)
	case graph.NodeTypeMax, graph.NodeTypeMin:
		low, high = of(0)
		l, h := of(1)
		if x.Type() == graph.NodeTypeMax {
			return max(low, l), max(high, h)
		}
		return min(low, l), min(high, h)
	case graph.NodeTypeClamp:
		low, _ = of(0)
		_, high = of(2)
	case graph.NodeTypeWhere:
		low, high = of(1)
		l, h := of(2)
		return min(low, l), max(high, h)
	case graph.NodeTypeAdd, graph.NodeTypeMul, graph.NodeTypeDiv:
		low, high = of(0)
		by, same := of(1)
		switch {
		case by != same || x.Type() != graph.NodeTypeAdd && by <= 0:
			return math.Inf(-1), math.Inf(1)
		case x.Type() == graph.NodeTypeAdd:
			return low + by, high + by
		case x.Type() == graph.NodeTypeMul:
			return low * by, high * by
		}
		return low / by, high / by
	}
	return low, high
}

// MadeBy is what made probabilities of an output, "" if it has none. It looks behind what keeps them probabilities, as
// a Reshape, a Dropout, a pool or a mean, and behind nothing else: a softmax that is multiplied or added, as in
// attention or a gate, makes logits.
func MadeBy(output *Node) string {
	left := 1000 // nodes to look at, for paths may fork
	var of func(x *Node) string
	all := func(list []*Node) (made string) { // of all that are not fixed numbers
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
	of = func(x *Node) string {
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
func fixedNumbers(x *Node, steps int) bool {
	if x.Type() == graph.NodeTypeConstant || x.Type() == graph.NodeTypeIota {
		return true
	}
	in := x.Inputs()
	return steps > 0 && len(in) > 0 && !slices.ContainsFunc(in, func(n *Node) bool { return !fixedNumbers(n, steps-1) })
}

// Expanded has axes of 1 behind its own, up to the rank of another node.
func Expanded(v, like *Node) *Node {
	for v.Rank() < like.Rank() {
		v = graph.ExpandAxes(v, -1)
	}
	return v
}

// Counted has 0 for the places that do not count, and each of the others as its share of the batch's mean over those
// that do, so that the mean over the places of all examples is that one; it is 0 if there are none. Examples that are
// padding are left out, if there is a mask of them.
func Counted(name string, v, places, examples *Node) *Node {
	if places == nil {
		return v
	}
	if v.Rank() < places.Rank() || places.Shape().CheckDims(v.Shape().Dimensions[:places.Rank()]...) != nil {
		panic(fmt.Errorf("loss %q gives %s for an output with the mask %s: expected a value for each place, [batch, places, …]; "+
			"a loss that leaves out places by itself is for an output without a mask: Masked(output, nil)", name, v.Shape(), places.Shape()))
	}
	wide := func(mask *Node) *Node {
		return graph.BroadcastToDims(Expanded(mask, v), v.Shape().Dimensions...)
	}
	number := func(mask *Node) *Node { return graph.ReduceAllSum(graph.ConvertDType(mask, v.DType())) }
	counts, all := wide(places), graph.OnesLike(v)
	if examples != nil {
		all = wide(examples)
	}
	share := graph.Div(number(all), graph.MaxScalar(number(wide(Both(places, examples))), 1))
	return graph.Mul(graph.Where(counts, v, graph.ZerosLike(v)), share)
}

// Both is where two masks are true, of which one may have more axes, or be nil.
func Both(a, b *Node) *Node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.Rank() < b.Rank():
		a, b = b, a
	}
	return graph.LogicalAnd(a, graph.BroadcastToDims(Expanded(b, a), a.Shape().Dimensions...))
}

// AtLeastZero is where labels, which may have a last axis of 1, are not below 0.
func AtLeastZero(labels, logits *Node) *Node {
	if labels.Rank() == logits.Rank() && labels.Rank() > 1 {
		labels = graph.Squeeze(labels, -1)
	}
	return graph.GreaterOrEqual(labels, graph.ZerosLike(labels))
}

// CrossEntropies returns the cross-entropy of each integer label and its logits. It is NaN for a label outside the
// classes.
func CrossEntropies(name, instead string, labels, logits *Node) *Node {
	SeveralClasses(name, logits, instead)
	NoProbabilities(name, logits)
	labels = Sparse(name, labels, logits)
	own := graph.OneHot(labels, Classes(logits), logits.DType())
	losses := graph.Neg(graph.ReduceSum(graph.Mul(own, graph.LogSoftmax(logits)), -1))
	within := graph.LessThan(labels, graph.Scalar(labels.Graph(), labels.DType(), Classes(logits)))
	if !labels.DType().IsUnsigned() {
		within = graph.LogicalAnd(within, graph.GreaterOrEqual(labels, graph.ZerosLike(labels)))
	}
	return graph.Where(within, losses, graph.MulScalar(graph.OnesLike(losses), math.NaN()))
}
