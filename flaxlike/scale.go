package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/metrics"
)

type scale struct {
	metric string
	are    numbers
}

// numbers are in the order of precedence among the losses of one output.
type numbers int

const (
	areLogits numbers = iota
	areExclusive
	areProbabilities
	areNumbers
	areUntold
)

func (s *settings) scaleOf(metric Metric, out map[string]*graph.Node, output *graph.Node) scale {
	if outputs.MadeBy(output) != "" {
		return scale{metric.Name, areProbabilities}
	}
	are := areUntold
	for _, l := range s.losses {
		if outputOf(out, l.Output) == outputOf(out, metric.Output) {
			are = min(are, numbersOf(l, output))
		}
	}
	return scale{metric.Name, are}
}

func numbersOf(l Loss, output *graph.Node) numbers {
	if l.kind().ofBatch && !outputs.From0To1(output) {
		return areUntold
	}
	return l.kind().output
}

func (s scale) binary(m metrics.Metric) metrics.Metric {
	return metrics.MapInputs(m, func(in []*graph.Node) []*graph.Node {
		labels, x, border := outputs.Same(fmt.Sprintf("metric %q", s.metric), in[0], in[1]), in[1], 0.5
		switch s.are {
		case areLogits:
			border = 0
		case areExclusive:
			x = graph.Softmax(x)
		case areUntold:
			s.refuse(x)
		}
		return []*graph.Node{metrics.Threshold(labels, 0.5), metrics.Threshold(x, border)}
	})
}

func (s scale) probable(m metrics.Metric) metrics.Metric {
	return metrics.MapInputs(m, func(in []*graph.Node) []*graph.Node {
		x, l := in[1], in[0].Shape()
		if l.DType.IsInt() && x.Rank() == l.Rank()+1 && outputs.Classes(x) > 1 {
			panic(fmt.Errorf("metric %q is of two classes, and the output %s has %d, of which the labels %s are numbers: "+
				"expected one output an example (Dense(1)) and labels 0 or 1, or labels as 0 and 1 for each class; "+
				"of several classes: accuracy, f1",
				s.metric, x.Shape(), outputs.Classes(x), l))
		}
		labels := outputs.Same(fmt.Sprintf("metric %q", s.metric), in[0], x)
		switch s.are {
		case areLogits:
			x = graph.Sigmoid(x)
		case areExclusive:
			x = graph.Softmax(x)
		case areNumbers:
			x = graph.MinScalar(graph.MaxScalar(x, 0), 1)
		case areUntold:
			s.refuse(x)
		}
		return []*graph.Node{metrics.Threshold(labels, 0.5), x}
	})
}

func (s scale) refuse(output *graph.Node) {
	panic(fmt.Errorf("metric %q: no loss by name has the output %s, so it is unknown whether its numbers are logits, "+
		"whose border is 0, or probabilities, whose is 0.5\n  end the network with nn.Activation(\"sigmoid\"), or use WithMetrics with a Metric of "+
		"metrics.MapInputs(metrics.Accuracy(), …), in which metrics.Threshold(output, 0) makes the classes", s.metric, output.Shape()))
}
