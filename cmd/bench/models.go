package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

type workload struct {
	steps, warmup int
	batches       []int
	variants      []string
	model         func(scope *model.Scope, x *graph.Node) *graph.Node
	regression    bool
	optimizer     func() *optim.Optimizer
}

var trained = map[string]workload{
	"tiny": {steps: 10_000, warmup: 200, batches: []int{8}, variants: []string{"metric", "log", "bar", oneByOne},
		model: dense(1), regression: true,
		optimizer: func() *optim.Optimizer {
			return optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1e-2).Done())
		}},
	"mlp": {steps: 468, warmup: 20, batches: []int{128}, variants: []string{"metric", "log", onDevice},
		model: dense(512, 512, 10), optimizer: adam},
	"cnn": {steps: 100, warmup: 5, batches: []int{128, 32}, variants: []string{"metric"},
		model: convolutional(32, 64, 256), optimizer: adam},
	"linear": {steps: 3_000, warmup: 100, batches: []int{32}, variants: []string{"metric", "bar", onDevice},
		model: dense(10),
		optimizer: func() *optim.Optimizer {
			return optim.GoMLX(optimizer.Adam().LearningRate(1e-3).Epsilon(1e-8).WeightDecay(1e-4).Done())
		}},
	"digits": {batches: []int{32}, model: convolutional(16, 32, 64), optimizer: adam},
}

func adam() *optim.Optimizer {
	return optim.GoMLX(optimizer.Adam().LearningRate(1e-3).Epsilon(1e-8).Done())
}

func dense(sizes ...int) func(*model.Scope, *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i, n := range sizes {
			if i > 0 {
				x = activation.Relu(x)
			}
			x = layers.Dense(scope.In("dense_%d", i), x, true, n)
		}
		return x
	}
}

func convolutional(c1, c2, hidden int) func(*model.Scope, *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i, c := range []int{c1, c2} {
			x = layers.Convolution(scope.In("conv_%d", i), x).Channels(c).KernelSize(3).PadSame().Done()
			x = graph.MeanPool(activation.Relu(x)).Window(2).Done()
		}
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		return dense(hidden, 10)(scope, x)
	}
}

const oneByOne = "one by one"

// onDevice is metric with the data there.
const onDevice = "on device"

func summed(variant string) bool {
	return variant == "metric" || variant == oneByOne || variant == onDevice
}

func (w workload) report(variant string) managed.Build {
	return func(b *managed.Builder) {
		x, y := b.Field("x"), b.Field("y")
		predicted := w.model(b.Scope(), x)
		var loss, accuracy *graph.Node
		if w.regression {
			loss = graph.ReduceAllMean(losses.SquaredError(y, predicted))
			accuracy = graph.ScalarZero(b.Graph(), loss.DType())
		} else {
			loss, accuracy = graph.ReduceAllMean(losses.CrossEntropy(y, predicted)), graph.ReduceAllMean(losses.Accuracy(y, predicted))
		}
		b.Loss("loss", loss)
		if !summed(variant) {
			b.Metric("accuracy", accuracy)
			return
		}
		sumUp(b, "loss", loss)
		sumUp(b, "accuracy", accuracy)
		sumUp(b, "n", graph.ScalarOne(b.Graph(), loss.DType()))
	}
}

func sumUp(b *managed.Builder, name string, v *graph.Node) {
	sum := b.Scope().At("metrics").VariableWithValue(name, float32(0)).SetTrainable(false)
	sum.SetNodeValue(graph.Add(sum.NodeValue(b.Graph()), graph.StopGradient(v)))
}

func (w workload) newState(r *xla.Runtime, seed int64) (*managed.State, error) {
	return managed.New(strategies.Jit(r), managed.WithOptimizer(w.optimizer()), managed.WithSeed(seed))
}

// Labels depend on the normal inputs (tiny) or are random.
func random(name string) (*data.Set, error) {
	r := rand.New(rand.NewPCG(0, 0))
	normal := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	if name == "tiny" {
		const n = 8_192
		x, y := normal(n*4), make([]float32, n)
		for i := range y {
			y[i] = x[4*i] - 2*x[4*i+1] + 3*x[4*i+2] + 0.5*x[4*i+3]
		}
		return data.New(data.X(x, n, 4), data.Y(y, n, 1))
	}
	n := 60_000
	if name == "cnn128" { // for the time to the first step
		n, name = 128, "cnn"
	}
	x, y := normal(n*784), make([]int32, n)
	for i := range y {
		y[i] = int32(r.IntN(10))
	}
	dims := []int{n, 784}
	if name == "cnn" {
		dims = []int{n, 28, 28, 1}
	}
	set, err := data.New(data.X(x, dims...), data.Y(y, n))
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return set, nil
}
