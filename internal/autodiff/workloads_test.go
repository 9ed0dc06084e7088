package autodiff_test

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
)

type node = *graph.Node

// inputs makes the parameters of a workload's graph.
type inputs struct {
	g    *graph.Graph
	vars *model.Scope
	wrt  []node
	made int
}

func (in *inputs) parameter(dtype dtypes.DType, dims ...int) node {
	in.made++
	return graph.Parameter(in.g, string(rune('a'+in.made-1)), shapes.Make(dtype, dims...))
}

// fixed is an input without a gradient.
func (in *inputs) fixed(dims ...int) node { return in.parameter(dtypes.Float32, dims...) }

// labels is a fixed integer input.
func (in *inputs) labels(dims ...int) node { return in.parameter(dtypes.Int32, dims...) }

// learned is an input with a gradient.
func (in *inputs) learned(dims ...int) node {
	n := in.fixed(dims...)
	in.wrt = append(in.wrt, n)
	return n
}

// workload is a program whose gradient is counted. testdata/jax_counts.py has a function of the same name.
type workload struct {
	name  string
	build func(in *inputs) node // a scalar is the loss; another output is weighted by a fixed input and summed
}

// positive are the workloads with positive inputs.
var positive = map[string]bool{"log": true, "log1p": true, "sqrt": true, "pow": true, "div": true, "div_broadcast": true}

// loss builds a workload's loss and collects what it is differentiated with respect to.
func (w workload) loss(g *graph.Graph) (loss node, wrt []node) {
	store := model.NewStore()
	store.SetTraining(g, true)
	model.SetStore(g, store)
	in := &inputs{g: g, vars: store.RootScope()}
	loss = w.build(in)
	if !loss.IsScalar() {
		loss = graph.ReduceAllSum(graph.Mul(loss, in.fixed(loss.Shape().Dimensions...)))
	}
	for v := range store.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			in.wrt = append(in.wrt, v.NodeValue(g))
		}
	}
	return loss, in.wrt
}

// image and kernel are the operands of the convolutions.
func image(in *inputs) node { return in.learned(8, 28, 28, 16) }

func convolve(set func(*graph.ConvolutionBuilder) *graph.ConvolutionBuilder, kernel ...int) func(in *inputs) node {
	return func(in *inputs) node {
		x := image(in)
		return set(graph.Convolve(x, in.learned(kernel...))).Done()
	}
}

func pool(make func(node) *graph.PoolBuilder, set func(*graph.PoolBuilder) *graph.PoolBuilder) func(in *inputs) node {
	return func(in *inputs) node { return set(make(image(in))).Done() }
}

// unary is a function of one learned matrix.
func unary(f func(node) node) func(in *inputs) node {
	return func(in *inputs) node { return f(in.learned(128, 512)) }
}

// binary is a function of a learned matrix and a learned operand of its own shape.
func binary(f func(a, b node) node, dims ...int) func(in *inputs) node {
	return func(in *inputs) node {
		a := in.learned(128, 512)
		return f(a, in.learned(dims...))
	}
}

var workloads = []workload{
	{"mlp", func(in *inputs) node {
		x, labels := in.fixed(128, 784), in.labels(128, 1)
		x = graph.Add(graph.DotProduct(x, in.learned(784, 512)), in.learned(1, 512))
		x = graph.Add(graph.DotProduct(activation.Relu(x), in.learned(512, 10)), in.learned(1, 10))
		return loss.SparseCategoricalCrossEntropyLogits([]node{labels}, []node{x})
	}},
	{"cnn", func(in *inputs) node {
		x, labels := in.fixed(32, 28, 28, 1), in.labels(32, 1)
		for i, channels := range []int{32, 64} {
			x = layers.Convolution(in.vars.In("conv_%d", i), x).Channels(channels).KernelSize(3).PadSame().Done()
			x = graph.MaxPool(activation.Relu(x)).Window(2).Done()
		}
		x = graph.Reshape(x, 32, -1)
		x = activation.Relu(layers.Dense(in.vars.In("dense_0"), x, true, 256))
		x = layers.Dense(in.vars.In("dense_1"), x, true, 10)
		return loss.SparseCategoricalCrossEntropyLogits([]node{labels}, []node{x})
	}},
	{"attention", func(in *inputs) node {
		x := in.learned(8, 64, 128)
		return attention.MultiHeadAttention(in.vars, x, x, x, 4, 32).Done()
	}},
	{"feed_forward", func(in *inputs) node {
		x := in.learned(8, 64, 128)
		x = activation.Gelu(layers.Dense(in.vars.In("up"), x, true, 512))
		return layers.Dense(in.vars.In("down"), x, true, 128)
	}},
	{"vector_dot_vector", func(in *inputs) node { return graph.DotProduct(in.learned(512), in.learned(512)) }},
	{"matrix_dot_vector", func(in *inputs) node {
		m := in.learned(128, 512)
		return graph.DotProduct(m, in.learned(512))
	}},
	{"batched_dot", func(in *inputs) node {
		q, k := in.learned(8, 64, 4, 32), in.learned(8, 64, 4, 32)
		return graph.Einsum("bqhd,bkhd->bhqk", q, k)
	}},
	{"conv_same", convolve((*graph.ConvolutionBuilder).PadSame, 3, 3, 16, 32)},
	{"conv_valid", convolve((*graph.ConvolutionBuilder).NoPadding, 3, 3, 16, 32)},
	{"conv_strides", convolve(func(c *graph.ConvolutionBuilder) *graph.ConvolutionBuilder { return c.PadSame().Strides(2) }, 3, 3, 16, 32)},
	{"conv_dilated", convolve(func(c *graph.ConvolutionBuilder) *graph.ConvolutionBuilder { return c.PadSame().Dilations(2) }, 3, 3, 16, 32)},
	{"conv_groups", convolve(func(c *graph.ConvolutionBuilder) *graph.ConvolutionBuilder {
		return c.PadSame().ChannelGroupCount(4)
	}, 3, 3, 4, 32)},
	{"conv_depthwise", convolve(func(c *graph.ConvolutionBuilder) *graph.ConvolutionBuilder {
		return c.PadSame().ChannelGroupCount(16)
	}, 3, 3, 1, 16)},
	{"conv_batch_groups", convolve(func(c *graph.ConvolutionBuilder) *graph.ConvolutionBuilder {
		return c.PadSame().BatchGroupCount(2)
	}, 3, 3, 16, 32)},
	{"max_pool", pool(graph.MaxPool, func(p *graph.PoolBuilder) *graph.PoolBuilder { return p.Window(2) })},
	{"max_pool_overlapping", pool(graph.MaxPool, func(p *graph.PoolBuilder) *graph.PoolBuilder { return p.Window(3).Strides(2).PadSame() })},
	{"mean_pool", pool(graph.MeanPool, func(p *graph.PoolBuilder) *graph.PoolBuilder { return p.Window(2) })},
	{"sum_pool_overlapping", pool(graph.SumPool, func(p *graph.PoolBuilder) *graph.PoolBuilder { return p.Window(3).Strides(2).PadSame() })},
	{"embedding", func(in *inputs) node {
		return layers.Embedding(in.vars, in.labels(128, 16, 1), dtypes.Float32, 1000, 64)
	}},
	{"layer_norm", func(in *inputs) node {
		return norm.LayerNorm(in.vars, in.learned(128, 512), -1).Epsilon(1e-6).Done()
	}},
	{"rms_norm", func(in *inputs) node { return norm.RMSNorm(in.vars, in.learned(128, 512)).Done() }},
	{"batch_norm", func(in *inputs) node { return norm.BatchNorm(in.vars, image(in), -1).Done() }},
	{"sparse_cross_entropy", func(in *inputs) node {
		logits := in.learned(128, 512)
		return loss.SparseCategoricalCrossEntropyLogits([]node{in.labels(128, 1)}, []node{logits})
	}},
	{"cross_entropy", func(in *inputs) node {
		logits := in.learned(128, 512)
		return loss.CategoricalCrossEntropyLogits([]node{in.fixed(128, 512)}, []node{logits})
	}},
	{"softmax", unary(func(x node) node { return graph.Softmax(x) })},
	{"log_softmax", unary(func(x node) node { return graph.LogSoftmax(x) })},
	{"masked_softmax", unary(func(x node) node {
		return graph.MaskedSoftmax(x, graph.GreaterThan(x, graph.ScalarZero(x.Graph(), x.DType())))
	})},
	{"gelu", unary(activation.Gelu)},
	{"gelu_approximate", unary(activation.GeluApproximate)},
	{"relu", unary(activation.Relu)},
	{"leaky_relu", unary(activation.LeakyRelu)},
	{"silu", unary(activation.Swish)},
	{"sigmoid", unary(graph.Sigmoid)},
	{"tanh", unary(graph.Tanh)},
	{"softplus", unary(graph.Softplus)},
	{"exp", unary(graph.Exp)},
	{"log", unary(graph.Log)},
	{"log1p", unary(graph.Log1P)},
	{"sqrt", unary(graph.Sqrt)},
	{"square", unary(graph.Square)},
	{"cube", unary(func(x node) node { return graph.PowScalar(x, 3) })},
	{"abs", unary(graph.Abs)},
	{"clip", unary(func(x node) node { return graph.ClipScalar(x, -1, 1) })},
	{"l2_norm", unary(func(x node) node { return graph.L2Norm(x, -1) })},
	{"reduce_sum", unary(func(x node) node { return graph.ReduceSum(x, 1) })},
	{"reduce_mean", unary(func(x node) node { return graph.ReduceMean(x, 1) })},
	{"reduce_max", unary(func(x node) node { return graph.ReduceMax(x, 1) })},
	{"reduce_variance", unary(func(x node) node { return graph.ReduceVariance(x, 1) })},
	{"bias", binary(graph.Add, 1, 512)},
	{"sub", binary(graph.Sub, 128, 512)},
	{"mul", binary(graph.Mul, 128, 512)},
	{"mul_broadcast", binary(graph.Mul, 1, 512)},
	{"div", binary(graph.Div, 128, 512)},
	{"div_broadcast", binary(graph.Div, 128, 1)},
	{"pow", binary(graph.Pow, 128, 512)},
	{"max", binary(graph.Max, 128, 512)},
	{"min_broadcast", binary(graph.Min, 1, 512)},
	{"where", func(in *inputs) node {
		positive := graph.GreaterThan(in.fixed(128, 512), graph.ScalarZero(in.g, dtypes.Float32))
		return graph.Where(positive, in.learned(128, 512), in.learned(128, 512))
	}},
	{"slice", unary(func(x node) node { return graph.Slice(x, graph.AxisRange(3, 99), graph.AxisRange().Stride(2)) })},
	{"concatenate", binary(func(a, b node) node { return graph.Concatenate([]node{a, b}, 0) }, 64, 512)},
	{"transpose", unary(func(x node) node { return graph.Transpose(x, 0, 1) })},
}
