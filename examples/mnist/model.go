package main

import (
	"context"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

const classes = 10

// network maps images [batch, height, width, 1] to logits [batch, classes].
func network(scope *model.Scope, x *graph.Node) *graph.Node {
	for i, channels := range []int{16, 32} {
		x = nn.Conv{Channels: channels, Window: []int{3}, Kernel: nn.Initial("he_normal")}.Apply(scope.In("conv_%d", i), x)
		x = graph.MeanPool(nn.Relu(x)).Window(2).Done()
	}
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = nn.Relu(nn.Dense{Units: 64, Kernel: nn.Initial("he_normal")}.Apply(scope.In("hidden"), x))
	return nn.Dense{Units: classes}.Apply(scope.In("logits"), x)
}

func report(b *managed.Builder) {
	logits := network(b.Scope(), b.Field("x"))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}

var (
	trainStep = managed.TrainStep(report)
	testStep  = managed.TestStep(report)
)

func evaluate(ctx context.Context, state *managed.State, set *data.Set) (float64, error) {
	_, logs, err := loop.Evaluate("", testStep, set.Batches(1000)).Run(ctx, state)
	if err != nil {
		return 0, err
	}
	return logs.Float("accuracy")
}
