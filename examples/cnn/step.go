package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/train/outer"
)

// network maps images [batch, height, width, 1] to logits [batch, 10].
func network(scope *managed.Scope, x *managed.Node) *managed.Node {
	for i, channels := range []int{32, 64} {
		x = layers.Convolution(scope.In("conv_%d", i), x).Channels(channels).KernelSize(3).PadSame().Done()
		x = graph.MeanPool(activation.Relu(x)).Window(2).Done()
	}
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, 256))
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// step is the one of training and of tests. What it tracks is gathered in the state, over all examples until the next
// reset, as clu's metrics are.
func step(b *managed.Builder) {
	labels, logits := b.Node("y"), network(b.Scope(), b.Node("x"))
	b.Loss("loss", managed.CrossEntropy(labels, logits))
	b.Track("accuracy", metrics.Accuracy(), nil, labels, logits)
	b.Track("f1", metrics.F1(10, metrics.Macro), nil, labels, logits)
}

// summary is an action: it writes what an inner loop and the test behind it came to.
func summary(w io.Writer) func(context.Context, outer.Border[*managed.State]) error {
	return func(_ context.Context, at outer.Border[*managed.State]) error {
		fmt.Fprintf(w, "step %4d", at.Elapsed.Steps)
		for _, part := range []struct {
			name   string
			values loop.Logs
		}{{"train", at.Outputs()}, {"test", at.Evaluations["test"].Outputs()}} {
			fmt.Fprintf(w, " | %s", part.name)
			for _, entry := range []string{"loss", "accuracy", "f1"} {
				v, err := part.values.Float(entry)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, " %s %.3f", entry, v)
			}
		}
		speed, err := at.Outputs().Float("steps_per_sec")
		fmt.Fprintf(w, " | %.0f steps/s\n", speed)
		return err
	}
}
