package nn

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/names"
)

var initializers = map[string]model.VariableInitializer{
	"glorot_normal": glorotNormal, "glorot_uniform": glorotUniform,
	"he_normal": heNormal, "he_uniform": heUniform,
	"lecun_normal": lecunNormal, "lecun_uniform": lecunUniform,
	"random_normal": RandomNormal(0.05), "random_uniform": RandomUniform(-0.05, 0.05), "truncated_normal": TruncatedNormal(0.05),
	"orthogonal": orthogonal, "zeros": graph.Zeros, "ones": graph.Ones,
}

// Initial returns an initializer by Keras's name, with Keras's defaults:
//
//	glorot_uniform    from ±√(6/(in+out)), for the inputs and outputs of a kernel [window…, in, out] (Glorot and Bengio 2010)
//	glorot_normal     of the deviation √(2/(in+out)), truncated at two deviations
//	he_uniform        from ±√(6/in) (He et al. 2015)
//	he_normal         of the deviation √(2/in), truncated likewise
//	lecun_uniform     from ±√(3/in) (LeCun et al. 1998)
//	lecun_normal      of the deviation √(1/in), truncated likewise
//	random_normal     RandomNormal(0.05)
//	random_uniform    RandomUniform(-0.05, 0.05)
//	truncated_normal  TruncatedNormal(0.05)
//	orthogonal        orthonormal columns, or rows if fewer (Saxe et al. 2013); all axes but the last are one
//	zeros, ones       Constant(0), Constant(1)
//
// Inputs and outputs count per place of a window. Random numbers follow the seed of the model's store. An unknown
// name is an error when the variable is made.
func Initial(name string) model.VariableInitializer {
	initial, err := names.Find("initializer", name, initializers)
	if err != nil {
		return func(*graph.Graph, shapes.Shape) *graph.Node { panic(fmt.Errorf("nn: %w", err)) }
	}
	return initial
}

var kernelNames = map[string]bool{"kernel": true, "depthwise_kernel": true, "pointwise_kernel": true}

const kernelsParam = "lazo.nn.kernels"

type kernels struct {
	below   string
	initial model.VariableInitializer
	taken   bool
}

// Kernels sets the initializer for kernels of layers at a scope and below that have none, but not for recurrent_kernel.
// Call it before the layers are built. taken reports whether a kernel has used it. A graph has one such scope.
func Kernels(scope *model.Scope, g *graph.Graph, initial model.VariableInitializer) (taken func() bool) {
	k := &kernels{below: scope.Scope(), initial: initial}
	scope.Store().RootScope().SetGraphParam(g, kernelsParam, k)
	return func() bool { return k.taken }
}

func (k *kernels) take(scope *model.Scope, standard model.VariableInitializer) model.VariableInitializer {
	if at := scope.Scope(); at != k.below && !strings.HasPrefix(at, strings.TrimSuffix(k.below, "/")+"/") {
		return standard
	}
	k.taken = true
	return k.initial
}

func glorotUniform(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return uniform(g, shape, math.Sqrt(3/mean(shape)))
}
func glorotNormal(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return cutNormal(g, shape, math.Sqrt(1/mean(shape)))
}
func heUniform(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return uniform(g, shape, math.Sqrt(6/in(shape)))
}
func heNormal(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return cutNormal(g, shape, math.Sqrt(2/in(shape)))
}
func lecunUniform(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return uniform(g, shape, math.Sqrt(3/in(shape)))
}
func lecunNormal(g *graph.Graph, shape shapes.Shape) *graph.Node {
	return cutNormal(g, shape, math.Sqrt(1/in(shape)))
}

func in(shape shapes.Shape) float64 {
	n, _ := fans(shape)
	return max(1, n)
}

func mean(shape shapes.Shape) float64 {
	in, out := fans(shape)
	return max(1, (in+out)/2)
}

// RandomNormal draws from a normal distribution with mean 0.
func RandomNormal(deviation float64) model.VariableInitializer {
	return func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		values := random(g).RandomNormal(g, single(shape))
		return graph.ConvertDType(graph.MulScalar(values, deviation), shape.DType)
	}
}

// RandomUniform draws uniformly from [low, high).
func RandomUniform(low, high float64) model.VariableInitializer {
	return func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		values := random(g).RandomUniform(g, single(shape))
		return graph.ConvertDType(graph.AddScalar(graph.MulScalar(values, high-low), low), shape.DType)
	}
}

// TruncatedNormal draws from a normal distribution with mean 0, truncated at two deviations. As in Keras, deviation is
// that before truncation, of which 0.88 remain.
func TruncatedNormal(deviation float64) model.VariableInitializer {
	return func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		return cutNormal(g, shape, deviation*cutDeviation)
	}
}

// Constant sets all elements to one value.
func Constant(value float64) model.VariableInitializer {
	return func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		return graph.BroadcastToDims(graph.Scalar(g, shape.DType, value), shape.Dimensions...)
	}
}

func orthogonal(g *graph.Graph, shape shapes.Shape) *graph.Node {
	if shape.Rank() < 2 {
		panic(fmt.Errorf("nn: the initializer orthogonal: the variable is %s, expected at least two axes", shape))
	}
	columns := shape.Dimensions[shape.Rank()-1]
	rows := shape.Size() / columns
	long, short := max(rows, columns), min(rows, columns)
	x := random(g).RandomNormal(g, shapes.Make(dtypes.Float32, long, short))
	gram := func() *graph.Node { return graph.Dot(graph.TransposeAllAxes(x, 1, 0), x).Product() }
	// This computes U·Vᵀ of x = U·S·Vᵀ. A norm of the Gram matrix scales the singular values to at most 1. Each step
	// moves them towards 1: a polynomial of degree 5 for small ones, then Newton–Schulz.
	norm := graph.ReduceAllMax(graph.ReduceSum(graph.Abs(gram()), 1))
	x = graph.Div(x, graph.Sqrt(norm))
	m, n := math.Sqrt(float64(long)), math.Sqrt(float64(short))
	least := max((m-n)/(m+n)/4, 1e-5/float64(short))
	for range int(math.Ceil(math.Log(0.7/least) / math.Log(3.4))) {
		a := gram()
		p := graph.Add(graph.MulScalar(a, -4.7750), graph.MulScalar(graph.Dot(a, a).Product(), 2.0315))
		x = graph.Add(graph.MulScalar(x, 3.4445), graph.Dot(x, p).Product())
	}
	for range 6 {
		x = graph.Sub(graph.MulScalar(x, 1.5), graph.MulScalar(graph.Dot(x, gram()).Product(), 0.5))
	}
	if rows < columns {
		x = graph.TransposeAllAxes(x, 1, 0)
	}
	return graph.ConvertDType(graph.Reshape(x, shape.Dimensions...), shape.DType)
}

func fans(shape shapes.Shape) (in, out float64) {
	dims := shape.Dimensions
	if len(dims) < 2 {
		return float64(shape.Size()), float64(shape.Size())
	}
	window := 1
	for _, n := range dims[:len(dims)-2] {
		window *= n
	}
	return float64(window * dims[len(dims)-2]), float64(window * dims[len(dims)-1])
}

func uniform(g *graph.Graph, shape shapes.Shape, limit float64) *graph.Node {
	return RandomUniform(-limit, limit)(g, shape)
}

// cutDeviation is that of the standard normal distribution truncated at ±2.
const cutDeviation = 0.87962566103423978

// cutNormal has the given deviation after truncation: the inverse error function (a polynomial, Giles 2010) of
// uniform numbers.
func cutNormal(g *graph.Graph, shape shapes.Shape, deviation float64) *graph.Node {
	u := random(g).RandomUniform(g, single(shape))
	x := graph.MulScalar(graph.AddScalar(graph.MulScalar(u, 2), -1), math.Erf(math.Sqrt2))
	w := graph.AddScalar(graph.Neg(graph.Log(graph.OneMinus(graph.Square(x)))), -2.5)
	p := graph.ZerosLike(w)
	for _, c := range []float64{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
		-0.00417768164, 0.246640727, 1.50140941} {
		p = graph.AddScalar(graph.Mul(p, w), c)
	}
	return graph.ConvertDType(graph.MulScalar(graph.Mul(p, x), math.Sqrt2*deviation/cutDeviation), shape.DType)
}

// single: 16-bit types have too few distinct values.
func single(shape shapes.Shape) shapes.Shape {
	if !shape.DType.IsFloat() {
		panic(fmt.Errorf("nn: an initializer of random numbers for a variable %s, expected a floating-point type", shape))
	}
	if shape.DType.Size() < 4 {
		return shapes.Make(dtypes.Float32, shape.Dimensions...)
	}
	return shape
}

func random(g *graph.Graph) *model.Store {
	s := model.GetStore(g)
	if s == nil {
		panic(fmt.Errorf("nn: an initializer of random numbers in a graph of no model.Store: let the store initialize its variables"))
	}
	return s
}
