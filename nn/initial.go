package nn

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Initializer makes the initial value of a variable. Random numbers are those of the model's store, so they follow its
// seed.
type Initializer = model.VariableInitializer

// initializers are those that need no number, by Keras's names.
var initializers = map[string]Initializer{
	"glorot_normal": GlorotNormal, "glorot_uniform": GlorotUniform,
	"he_normal": HeNormal, "he_uniform": HeUniform,
	"lecun_normal": LecunNormal, "lecun_uniform": LecunUniform,
	"random_normal": RandomNormal(0.05), "random_uniform": RandomUniform(-0.05, 0.05), "truncated_normal": TruncatedNormal(0.05),
	"orthogonal": Orthogonal, "zeros": Zeros, "ones": Ones,
}

// InitializerNamed is an initializer by Keras's name, as "he_normal", with Keras's defaults.
func InitializerNamed(name string) (Initializer, error) {
	if i, ok := initializers[name]; ok {
		return i, nil
	}
	var known []string
	for n := range initializers {
		known = append(known, n)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("nn: no initializer %q: expected one of %s", name, strings.Join(known, ", "))
}

// kernelNames are those of the variables that [Kernels] is for.
var kernelNames = map[string]bool{"kernel": true, "depthwise_kernel": true, "pointwise_kernel": true}

const kernelsParam = "lazo.nn.kernels"

type kernels struct {
	below   string
	initial Initializer
	taken   bool
}

// Kernels has the kernels of layers of a graph, at a scope and below it, begin as the initializer says where their
// settings do not: not recurrent_kernel, biases and embeddings. It is called before the layers; taken tells whether any
// was given it since. A graph has one such scope.
func Kernels(scope *Scope, g *Graph, initial Initializer) (taken func() bool) {
	k := &kernels{below: scope.Scope(), initial: initial}
	scope.Store().RootScope().SetGraphParam(g, kernelsParam, k)
	return func() bool { return k.taken }
}

// take is what a layer's kernel at a scope begins as.
func (k *kernels) take(scope *Scope, standard Initializer) Initializer {
	if at := scope.Scope(); at != k.below && !strings.HasPrefix(at, strings.TrimSuffix(k.below, "/")+"/") {
		return standard
	}
	k.taken = true
	return k.initial
}

// GlorotUniform draws from ±√(6/(in+out)), for the numbers of inputs and outputs that a kernel [window…, in, out] has,
// each counted once for each place of a window (Glorot and Bengio 2010).
func GlorotUniform(g *Graph, shape Shape) *Node {
	in, out := fans(shape)
	return uniform(g, shape, math.Sqrt(3/max(1, (in+out)/2)))
}

// GlorotNormal draws from a normal distribution of the deviation √(2/(in+out)), cut off behind two deviations.
func GlorotNormal(g *Graph, shape Shape) *Node {
	in, out := fans(shape)
	return cutNormal(g, shape, math.Sqrt(1/max(1, (in+out)/2)))
}

// HeUniform draws from ±√(6/in) (He et al. 2015).
func HeUniform(g *Graph, shape Shape) *Node {
	in, _ := fans(shape)
	return uniform(g, shape, math.Sqrt(6/max(1, in)))
}

// HeNormal draws from a normal distribution of the deviation √(2/in), cut off behind two deviations.
func HeNormal(g *Graph, shape Shape) *Node {
	in, _ := fans(shape)
	return cutNormal(g, shape, math.Sqrt(2/max(1, in)))
}

// LecunUniform draws from ±√(3/in) (LeCun et al. 1998).
func LecunUniform(g *Graph, shape Shape) *Node {
	in, _ := fans(shape)
	return uniform(g, shape, math.Sqrt(3/max(1, in)))
}

// LecunNormal draws from a normal distribution of the deviation √(1/in), cut off behind two deviations.
func LecunNormal(g *Graph, shape Shape) *Node {
	in, _ := fans(shape)
	return cutNormal(g, shape, math.Sqrt(1/max(1, in)))
}

// RandomNormal draws from a normal distribution around 0.
func RandomNormal(deviation float64) Initializer {
	return func(g *Graph, shape Shape) *Node {
		values := random(g).RandomNormal(g, single(shape))
		return graph.ConvertDType(graph.MulScalar(values, deviation), shape.DType)
	}
}

// RandomUniform draws from low to below high.
func RandomUniform(low, high float64) Initializer {
	return func(g *Graph, shape Shape) *Node {
		values := random(g).RandomUniform(g, single(shape))
		return graph.ConvertDType(graph.AddScalar(graph.MulScalar(values, high-low), low), shape.DType)
	}
}

// TruncatedNormal draws from a normal distribution around 0 that is cut off behind two times the given number. That
// number is the deviation before the cut, as in Keras; what is drawn has 0.88 of it.
func TruncatedNormal(deviation float64) Initializer {
	return func(g *Graph, shape Shape) *Node { return cutNormal(g, shape, deviation*cutDeviation) }
}

// Constant gives all numbers one value.
func Constant(value float64) Initializer {
	return func(g *Graph, shape Shape) *Node {
		return graph.BroadcastToDims(graph.Scalar(g, shape.DType, value), shape.Dimensions...)
	}
}

// Zeros is 0 for all numbers.
func Zeros(g *Graph, shape Shape) *Node { return graph.Zeros(g, shape) }

// Ones is 1 for all numbers.
func Ones(g *Graph, shape Shape) *Node { return graph.Ones(g, shape) }

// Orthogonal draws a matrix with orthonormal columns, or rows where it has fewer, uniformly among all (Saxe et al.
// 2013). All axes but the last are one.
func Orthogonal(g *Graph, shape Shape) *Node {
	if shape.Rank() < 2 {
		panic(fmt.Errorf("nn: Orthogonal: the variable is %s, expected two axes at least", shape))
	}
	columns := shape.Dimensions[shape.Rank()-1]
	rows := shape.Size() / columns
	long, short := max(rows, columns), min(rows, columns)
	x := random(g).RandomNormal(g, shapes.Make(dtypes.Float32, long, short))
	gram := func() *Node { return graph.Dot(graph.TransposeAllAxes(x, 1, 0), x).Product() }
	// The factor U·Vᵀ of x = U·S·Vᵀ. The greatest singular value is first brought to at most 1 by a norm of the Gram
	// matrix, then each step is an odd polynomial of x that brings all nearer to 1: these of degree 5 for the small ones,
	// then Newton and Schulz's.
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

// fans are the numbers of inputs and outputs of a kernel [window…, in, out].
func fans(shape Shape) (in, out float64) {
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

func uniform(g *Graph, shape Shape, limit float64) *Node {
	return RandomUniform(-limit, limit)(g, shape)
}

// cutDeviation is the deviation of the standard normal distribution cut off behind ±2.
const cutDeviation = 0.87962566103423978

// cutNormal draws from a normal distribution cut off behind two deviations, so that what is drawn has the deviation:
// the inverse of the error function, by its polynomial near 0 (Giles 2010), of uniform numbers.
func cutNormal(g *Graph, shape Shape, deviation float64) *Node {
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

// single is a shape for drawing: types of 16 bits have too few numbers.
func single(shape Shape) Shape {
	if !shape.DType.IsFloat() {
		panic(fmt.Errorf("nn: an initializer of random numbers for a variable %s, expected a floating-point type", shape))
	}
	if shape.DType.Size() < 4 {
		return shapes.Make(dtypes.Float32, shape.Dimensions...)
	}
	return shape
}

func random(g *Graph) *model.Store {
	s := model.GetStore(g)
	if s == nil {
		panic(fmt.Errorf("nn: an initializer of random numbers in a graph of no model.Store: let the store initialize its variables"))
	}
	return s
}
