package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// network maps images [batch, height, width, 1] to logits [batch, 10].
func network(scope *model.Scope, x *graph.Node) *graph.Node {
	for i, channels := range []int{32, 64} {
		x = nn.Conv{Channels: channels, Window: []int{3}, Kernel: nn.Initial("he_normal")}.Apply(scope.In("conv_%d", i), x)
		x = graph.MeanPool(nn.Relu(x)).Window(2).Done()
	}
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = nn.Relu(nn.Dense{Units: 256, Kernel: nn.Initial("he_normal")}.Apply(scope.In("hidden"), x))
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
}

// step is for training and tests. Its metrics accumulate over all examples until a reset, as in clu.
func step(b *managed.Builder) {
	labels, logits := b.Field("y"), network(b.Scope(), b.Field("x"))
	b.Loss("loss", losses.CrossEntropy(labels, logits))
	b.Track("accuracy", metrics.Accuracy(), nil, labels, logits)
	b.Track("f1", metrics.FBeta(1, 10, metrics.Macro), nil, labels, logits)
}

func summary(w io.Writer) func(context.Context, loop.Report) error {
	last := loop.Elapsed{} // end of the previous inner loop
	return func(_ context.Context, r loop.Report) error {
		if last.Steps == 0 {
			last = r.From
		}
		loss, err := r.History.Since(last.Steps).Mean("loss")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "step %4d | train loss %.3f", r.Elapsed.Steps, loss)
		for _, figure := range [][2]string{{"accuracy", "accuracy"}, {"f1", "f1"}, {"| test loss", "loss_test"}, {"accuracy", "accuracy_test"}, {"f1", "f1_test"}} {
			v, err := r.Logs.Float(figure[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(w, " %s %.3f", figure[0], v)
		}
		made := r.Elapsed.Since(last)
		fmt.Fprintf(w, " | %.0f steps/s\n", float64(made.Steps)/made.Time.Seconds())
		last = r.Elapsed
		return nil
	}
}
