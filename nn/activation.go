package nn

import (
	"math"
	"regexp"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/names"
)

// Activation is an activation by GoMLX's name: "relu", "leaky_relu", "gelu", "swish", "tanh", …, or "relu6", "softmax"
// or "quick_gelu", x·sigmoid(1.702x). As in Keras, "leaky_relu" has the slope 0.2 below 0, and "hard_sigmoid" is x/6 +
// 0.5 between 0 and 1 (GoMLX: 0.3 and 0.2). At a kink next to a flat part, like "relu" at 0, the slope is 0. An unknown
// name is an error of the step. "gelu" is x·Φ(x), "gelu_approx" Φ by tanh.
type Activation string

func (a Activation) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(a, scope, x) }

func (a Activation) build(scope *model.Scope, x *graph.Node) *graph.Node {
	f, err := names.Find("activation", string(a), activations())
	if err != nil {
		fail("Activation", scope, "%w", err)
	}
	return f(x)
}

// Relu is max(x, 0), with slope 0 at 0.
func Relu(x *graph.Node) *graph.Node {
	return graph.Max(graph.ScalarZero(x.Graph(), x.DType()), x) // at a tie the slope is the first operand's
}

// SoftCap is most·tanh(x/most), between -most and most, and x near 0 (Bello et al. 2016).
func SoftCap(x *graph.Node, most float64) *graph.Node {
	return graph.MulScalar(graph.Tanh(graph.DivScalar(x, most)), most)
}

// lean is f, whose gradient computes f's inner values again: keeping an erf or tanh takes as long, and memory.
func lean(f func(x *graph.Node) *graph.Node, x *graph.Node) *graph.Node {
	return autodiff.Custom(f(x), []*graph.Node{x}, func(in []*graph.Node, _, v *graph.Node) []*graph.Node {
		x := graph.SchedulingBarrier(in[0], v) // else XLA would take f's inner values
		return autodiff.Gradient(autodiff.Weighted([]*graph.Node{f(x)}, []*graph.Node{v}), x)
	})
}

func gelu(x *graph.Node) *graph.Node {
	wide := widened(x)
	below := autodiff.Custom(cdf(wide), []*graph.Node{wide}, func(in []*graph.Node, _, v *graph.Node) []*graph.Node {
		return []*graph.Node{graph.Mul(v, graph.MulScalar(bell(in[0]), 1/math.Sqrt(2*math.Pi)))}
	})
	return graph.ConvertDType(graph.Mul(wide, below), x.DType())
}

func bell(x *graph.Node) *graph.Node { return graph.Exp(graph.MulScalar(graph.Square(x), -0.5)) }

// cdfTail are coefficients, highest first, of a polynomial in s = 1/(1+|x|/4): s times it is Φ(-|x|)·exp(x²/2) with a
// relative error below 4e-8, fitted to scipy's erfcx.
var cdfTail = []float64{
	0.0197820362, -0.0808774248, 0.0955972759, -0.0317176889, 0.0636991902, 0.0589751294, 0.0816031115, 0.0934663552, 0.0997364316, 0.0997355667,
}

// cdf is Φ, the normal distribution's. 1+erf(x/√2) has no correct digit below -5 in float32.
func cdf(x *graph.Node) *graph.Node {
	if x.DType() == dtypes.Float64 {
		return graph.MulScalar(graph.OnePlus(graph.Erf(graph.MulScalar(x, math.Sqrt2/2))), 0.5)
	}
	s := graph.Reciprocal(graph.OnePlus(graph.MulScalar(graph.Abs(x), 0.25)))
	sum := graph.Scalar(x.Graph(), x.DType(), cdfTail[0])
	for _, c := range cdfTail[1:] {
		sum = graph.AddScalar(graph.Mul(sum, s), c)
	}
	tail := graph.Mul(bell(x), graph.Mul(s, sum))
	return graph.Where(graph.LessThan(x, graph.ScalarZero(x.Graph(), x.DType())), tail, graph.OneMinus(tail))
}

var word = regexp.MustCompile(`([a-z])([A-Z][a-z])`)

func activations() map[string]func(*graph.Node) *graph.Node {
	table := map[string]func(*graph.Node) *graph.Node{}
	for _, t := range activation.TypeValues() {
		table[strings.ToLower(word.ReplaceAllString(t.String(), "${1}_$2"))] = func(x *graph.Node) *graph.Node { return activation.Apply(t, x) }
	}
	relu6 := func(x *graph.Node) *graph.Node { return graph.MinScalar(Relu(x), 6) }
	hardSigmoid := func(x *graph.Node) *graph.Node { return graph.DivScalar(relu6(graph.AddScalar(x, 3)), 6) }
	table["gelu"] = func(x *graph.Node) *graph.Node { return lean(gelu, x) }
	table["gelu_approx"] = func(x *graph.Node) *graph.Node { return lean(activation.GeluApproximate, x) }
	table["softmax"] = func(x *graph.Node) *graph.Node { return graph.Softmax(x) }
	table["relu"], table["relu6"], table["hard_sigmoid"] = Relu, relu6, hardSigmoid
	table["hard_swish"] = func(x *graph.Node) *graph.Node { return graph.Mul(x, hardSigmoid(x)) }
	table["quick_gelu"] = func(x *graph.Node) *graph.Node { return graph.Mul(x, graph.Sigmoid(graph.MulScalar(x, 1.702))) }
	table["leaky_relu"] = func(x *graph.Node) *graph.Node { return activation.LeakyReluWith(x, 0.2) }
	return table
}
