package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// network is a ResNet of seven layers (He et al. 2016) from images [batch, 8, 8, 1] to logits [batch, 10].
func network(scope *model.Scope, x *graph.Node) *graph.Node {
	x = normalised(scope.In("stem"), x, 16, 1)
	x = residual(scope.In("block_0"), nn.Relu(x), 16, 1)
	x = residual(scope.In("block_1"), x, 32, 2)
	x = graph.ReduceMean(x, 1, 2)
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
}

// residual adds two convolutions of x to it. If they change the shape, a 1×1 convolution adapts x.
func residual(scope *model.Scope, x *graph.Node, channels, strides int) *graph.Node {
	h := nn.Relu(normalised(scope.In("first"), x, channels, strides))
	h = normalised(scope.In("second"), h, channels, 1)
	if !x.Shape().Equal(h.Shape()) {
		x = nn.Conv{Channels: channels, Window: []int{1}, Strides: []int{strides}, NoBias: true}.Apply(scope.In("shortcut"), x)
	}
	return nn.Relu(graph.Add(x, h))
}

// normalised is a convolution and a batch normalization, over the whole batch. The momentum is low because the run is
// short.
func normalised(scope *model.Scope, x *graph.Node, channels, strides int) *graph.Node {
	x = nn.Conv{Channels: channels, Window: []int{3}, Strides: []int{strides}, NoBias: true}.Apply(scope, x)
	return nn.BatchNorm{Momentum: 0.9}.Apply(scope, x)
}

func step(b *managed.Builder) {
	logits := network(b.Scope(), b.Field("x"))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}
