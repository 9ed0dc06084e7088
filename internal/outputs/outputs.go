// Package outputs matches a model's outputs with labels, for losses and metrics.
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

type Node = graph.Node

func Classes(logits *Node) int { return logits.Shape().Dimensions[logits.Rank()-1] }

// SeveralClasses panics for one class.
func SeveralClasses(what string, output *Node, instead string) {
	if output.Rank() < 2 || Classes(output) < 2 {
		panic(fmt.Errorf("%s: the output %s has one class, whose probability is always 1: expected [batch, …, classes], with two or more; of one logit take %s",
			what, output.Shape(), instead))
	}
}

// Same returns labels with the output's dims and dtype.
func Same(name string, labels, output *Node) *Node {
	l, o := labels.Shape(), output.Shape()
	if o.Rank() == l.Rank()+1 && o.Dimensions[l.Rank()] == 1 { // [batch] and [batch, 1] would broadcast to [batch, batch]
		labels = graph.ExpandAxes(labels, -1)
		l = labels.Shape()
	}
	if !o.DType.IsFloat() || !l.EqualDimensions(o) {
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected one shape, and the output in floats%s", name, l, o, instead(name, labels, output)))
	}
	return graph.ConvertDType(labels, o.DType)
}

func instead(name string, labels, output *Node) string {
	l, o := labels.Shape(), output.Shape()
	single := l.Rank() == o.Rank()-1 || l.Rank() == o.Rank() && l.Rank() > 1 && Classes(labels) == 1
	switch {
	case !single || o.Rank() < 2 || Classes(output) < 2 || !o.DType.IsFloat():
		return ""
	case strings.HasPrefix(name, "binary"):
		return "\n  for two classes use one logit: end the network with nn.Dense{Units: 1}; or keep the output, and take sparse_categorical_crossentropy, " +
			"whose labels are integers"
	case strings.HasPrefix(name, "categorical") && l.DType.IsInt():
		return "\n  of labels that are numbers of classes take sparse_categorical_crossentropy, or make rows of them by data.OneHot"
	case l.DType.IsInt():
		return "\n  of labels that are numbers of classes take sparse_categorical_crossentropy; of labels that are quantities take an output of one number: " +
			"end the network with nn.Dense{Units: 1}"
	}
	return ""
}

// Sparse returns integer labels without a last axis of 1.
func Sparse(name string, labels, logits *Node) *Node {
	l, o := labels.Shape(), logits.Shape()
	if !l.DType.IsInt() {
		panic(fmt.Errorf("%s: the labels are %s, expected integers, as []int32: of one-hot labels and of probabilities take categorical_crossentropy", name, l))
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
		if l.EqualDimensions(o) {
			hint = "\n  of one-hot labels take categorical_crossentropy"
		}
		panic(fmt.Errorf("%s: labels %s do not fit the output %s: expected integers [batch] and floats [batch, classes]%s", name, l, o, hint))
	}
	if labels.DType().Size() < 4 { // which need not hold all classes: of 300, uint8 would make class 256 class 0
		labels = graph.ConvertDType(labels, dtypes.Int32)
	}
	return labels
}

// NoProbabilities panics after a softmax or sigmoid.
func NoProbabilities(name string, output *Node) {
	made := MadeBy(output)
	if made == "" && From0To1(output) {
		made = "function from 0 to 1"
	}
	if made != "" {
		panic(fmt.Errorf("%s: the output went through a %s, expected logits: take that layer off; the loss has it in it", name, made))
	}
}

// From0To1 reports whether the graph shows values from 0 to 1, as after a sigmoid, softmax or clip.
func From0To1(output *Node) bool {
	low, high := bounds(output, 12)
	return MadeBy(output) != "" || low >= -1e-6 && high <= 1+1e-6 // a factor may round
}

func Infinite(x *Node) bool {
	low, high := bounds(x, 12)
	return low == high && math.IsInf(low, 0)
}

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

// MadeBy returns "sigmoid", "softmax" or "". It looks through operations that keep probabilities (Reshape, Dropout,
// pooling, means), not products or sums, as in attention.
func MadeBy(output *Node) string {
	left := 1000 // paths may fork
	var of func(x *Node) string
	all := func(list []*Node) (made string) { // ignores constants
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
			switch sum.Type() { // A mean, or Dropout; a scaled sigmoid is logits.
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

func fixedNumbers(x *Node, steps int) bool {
	if x.Type() == graph.NodeTypeConstant || x.Type() == graph.NodeTypeIota {
		return true
	}
	in := x.Inputs()
	return steps > 0 && len(in) > 0 && !slices.ContainsFunc(in, func(n *Node) bool { return !fixedNumbers(n, steps-1) })
}

func Expanded(v, like *Node) *Node {
	for v.Rank() < like.Rank() {
		v = graph.ExpandAxes(v, -1)
	}
	return v
}

// Counted scales the places that count and excludes others: the mean over all is that over those that count, or 0.
// examples masks padding or is nil.
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

// ByExample returns each example's mean over the places that count, and how many numbers of v that is. An example
// without such a place has mean 0 and a count near 0, for a mean of 0 over such examples alone.
func ByExample(v, places *Node) (mean, count *Node) {
	wide := graph.BroadcastToDims(Expanded(places, v), v.Shape().Dimensions...)
	sum := func(x *Node) *Node {
		return graph.ReduceSum(graph.Reshape(x, x.Shape().Dimensions[0], -1), -1)
	}
	count = sum(graph.ConvertDType(wide, dtypes.Float32))
	mean = graph.Div(sum(graph.Where(wide, v, graph.ZerosLike(v))), graph.ConvertDType(graph.MaxScalar(count, 1), v.DType()))
	return mean, graph.MaxScalar(count, 1e-20)
}

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

// AtLeastZero accepts labels with a last axis of 1.
func AtLeastZero(labels, logits *Node) *Node {
	if labels.Rank() == logits.Rank() && labels.Rank() > 1 {
		labels = graph.Squeeze(labels, -1)
	}
	return graph.GreaterOrEqual(labels, graph.ZerosLike(labels))
}

// CrossEntropies returns the cross-entropy of each integer label and its logits, NaN for a label outside the classes.
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
	return OrNaN(within, losses)
}

func OrNaN(within, losses *Node) *Node {
	return graph.Where(within, losses, graph.MulScalar(graph.OnesLike(losses), math.NaN()))
}
