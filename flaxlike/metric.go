package flaxlike

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn/losses"
)

// Metric is a model's metric. It needs a Name that [WithMetrics] knows, or a Name and either a Metric or a Func.
type Metric struct {
	// Name is that in the logs; with an Output it is "<output>_<name>".
	Name string
	// Metric accumulates labels and output over an epoch or an evaluation. With labels [batch] an output [batch, 1]
	// is given as [batch]. Labels below 0 and those of Ignore have weight 0 if the Output and Label have the loss
	// masked_sparse_categorical_crossentropy.
	Metric metrics.Metric
	// Func gets both as in [Loss]. It returns values for examples, or a scalar of the batch; the metric is the mean
	// over all examples.
	Func func(labels, output *graph.Node) *graph.Node
	// Output and Label are as in [Loss].
	Output, Label string
	// Weighted applies the sample weights and, in training, the class weights, and divides by their sum. Without either
	// it is an error.
	Weighted bool
}

func (m Metric) logged() string {
	if m.Output != "" {
		return m.Output + "_" + m.Name
	}
	return m.Name
}

type metricMaker func(output *graph.Node, are scale) metrics.Metric

var metricsByName = map[string]metricMaker{
	"accuracy":                          accuracy,
	"acc":                               accuracy,
	"sparse_categorical_accuracy":       fixed(metrics.Accuracy),
	"categorical_accuracy":              fixed(metrics.Accuracy),
	"binary_accuracy":                   func(_ *graph.Node, are scale) metrics.Metric { return are.binary(metrics.Accuracy()) },
	"top_5_accuracy":                    fixed(func() metrics.Metric { return metrics.TopK(5) }),
	"sparse_top_k_categorical_accuracy": fixed(func() metrics.Metric { return metrics.TopK(5) }),
	"mean_squared_error":                errorMetric(metrics.MeanSquaredError),
	"mse":                               errorMetric(metrics.MeanSquaredError),
	"root_mean_squared_error":           errorMetric(metrics.RootMeanSquaredError),
	"rmse":                              errorMetric(metrics.RootMeanSquaredError),
	"mean_absolute_error":               errorMetric(metrics.MeanAbsoluteError),
	"mae":                               errorMetric(metrics.MeanAbsoluteError),
	"r2_score":                          columnMetric(metrics.R2),
	"r2":                                columnMetric(metrics.R2),
	"cosine_similarity":                 errorMetric(metrics.CosineSimilarity),
	"perplexity":                        fixed(metrics.Perplexity),
	"crossentropy":                      fixed(metrics.CrossEntropy),
	"precision":                         scored("precision"),
	"recall":                            scored("recall"),
	"f1_score":                          scored("f1_score"),
	"f1":                                scored("f1"),
	"mean_iou":                          scored("mean_iou"),
	"pearson_correlation":               meanOf(eachPearson),
	"pearson":                           columnMetric(metrics.Pearson),
	"concordance_correlation":           meanOf(eachConcordance),
	"concordance":                       columnMetric(metrics.Concordance),
	"log_cosh":                          meanOf(Loss{Name: "log_cosh"}.byName()),
	"mean_absolute_percentage_error":    meanOf(Loss{Name: "mean_absolute_percentage_error"}.byName()),
	"mape":                              meanOf(Loss{Name: "mean_absolute_percentage_error"}.byName()),
	"mean_squared_logarithmic_error":    meanOf(Loss{Name: "mean_squared_logarithmic_error"}.byName()),
	"msle":                              meanOf(Loss{Name: "mean_squared_logarithmic_error"}.byName()),
	"poisson":                           meanOf(Loss{Name: "poisson"}.byName()),
	"hinge":                             meanOf(Loss{Name: "hinge"}.byName()),
	"squared_hinge":                     meanOf(Loss{Name: "squared_hinge"}.byName()),
	"categorical_hinge":                 meanOf(Loss{Name: "categorical_hinge"}.byName()),
	"kl_divergence":                     meanOf(Loss{Name: "kl_divergence"}.byName()),
	"categorical_crossentropy":          meanOf(Loss{Name: "categorical_crossentropy"}.byName()),
	"binary_crossentropy":               meanOf(Loss{Name: "binary_crossentropy"}.byName()),
	"average_precision":                 func(_ *graph.Node, are scale) metrics.Metric { return are.probable(metrics.AveragePrecision(200)) },
	"auc":                               func(_ *graph.Node, are scale) metrics.Metric { return are.probable(metrics.AUC(200)) },
}

var ofClasses = map[string]string{
	"accuracy": "", "acc": "", "binary_accuracy": "", "precision": "", "recall": "", "f1_score": "", "f1": "", "mean_iou": "", "auc": "", "average_precision": "",
	"sparse_categorical_accuracy": "binary_accuracy", "categorical_accuracy": "binary_accuracy",
	"top_5_accuracy": "binary_accuracy", "sparse_top_k_categorical_accuracy": "binary_accuracy",
	"perplexity": "binary_crossentropy", "crossentropy": "binary_crossentropy",
}

var ranks = map[string]bool{"auc": true, "average_precision": true}

// notLikeliest metrics do not compare the likeliest class.
var notLikeliest = map[string]bool{"binary_accuracy": true, "auc": true, "average_precision": true, "perplexity": true, "crossentropy": true}

func fixed(of func() metrics.Metric) metricMaker {
	return func(*graph.Node, scale) metrics.Metric { return of() }
}

func accuracy(output *graph.Node, are scale) metrics.Metric {
	if oneEach(output) {
		return are.binary(metrics.Accuracy())
	}
	return metrics.Accuracy()
}

func scored(name string) metricMaker {
	return func(output *graph.Node, are scale) metrics.Metric {
		if oneEach(output) {
			return are.binary(scoresByName[name](2, metrics.Binary))
		}
		return scoresByName[name](outputs.Classes(output), metrics.Macro)
	}
}

var scoresByName = map[string]func(classes int, average metrics.Average) metrics.Metric{
	"precision": metrics.Precision, "recall": metrics.Recall, "f1_score": f1, "f1": f1,
	"mean_iou": func(classes int, _ metrics.Average) metrics.Metric { return metrics.MeanIoU(classes) },
}

func f1(classes int, average metrics.Average) metrics.Metric {
	return metrics.FBeta(1, classes, average)
}

func oneEach(output *graph.Node) bool { return output.Rank() < 2 || outputs.Classes(output) == 1 }

func errorMetric(of func() metrics.Metric) metricMaker {
	return func(*graph.Node, scale) metrics.Metric {
		return metrics.MapInputs(of(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{outputs.Same("metric", in[0], in[1]), in[1]}
		})
	}
}

func columnMetric(of func(columns int) metrics.Metric) metricMaker {
	return func(output *graph.Node, are scale) metrics.Metric {
		columns := 1
		if output.Rank() > 1 {
			columns = outputs.Classes(output)
		}
		return errorMetric(func() metrics.Metric { return of(columns) })(output, are)
	}
}

func meanOf(f losses.Func) metricMaker {
	return fixed(func() metrics.Metric {
		return metrics.MapInputs(metrics.Mean(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{f(in[0], in[1])}
		})
	})
}

func eachPearson(labels, output *graph.Node) *graph.Node {
	x, y := apart("pearson", labels, output)
	return graph.Div(meanOfLast(graph.Mul(x, y)), graph.Mul(graph.Sqrt(meanOfLast(graph.Square(x))), graph.Sqrt(meanOfLast(graph.Square(y)))))
}

func eachConcordance(labels, output *graph.Node) *graph.Node {
	x, y := apart("concordance", labels, output)
	between := graph.Square(meanOfLast(graph.Sub(graph.ConvertDType(output, x.DType()), graph.ConvertDType(labels, x.DType()))))
	spread := graph.Add(graph.Add(meanOfLast(graph.Square(x)), meanOfLast(graph.Square(y))), between)
	return graph.Div(graph.MulScalar(meanOfLast(graph.Mul(x, y)), 2), graph.AddScalar(spread, 1e-7))
}

func apart(name string, labels, output *graph.Node) (x, y *graph.Node) {
	labels = outputs.Same(name+"_correlation", labels, output)
	if output.Rank() < 2 || outputs.Classes(output) < 2 {
		panic(fmt.Errorf("metric %q correlates the numbers of each example, as Keras's, and the output %s has one an example: "+
			"expected [batch, …, n], with n of two or more; to correlate over all examples use %q", name+"_correlation", output.Shape(), name))
	}
	less := func(v *graph.Node) *graph.Node {
		v = graph.ConvertDType(v, dtypes.Float64)
		return graph.Sub(v, graph.ExpandAxes(meanOfLast(v), -1))
	}
	return less(labels), less(output)
}

func meanOfLast(x *graph.Node) *graph.Node { return graph.ReduceMean(x, -1) }

type scale struct {
	metric string
	are    meaning
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
