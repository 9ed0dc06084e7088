package flaxlike

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
)

// Metric is a figure of a model. Only a Name that [WithMetrics] knows is needed, or a Name and one of Metric and Func.
type Metric struct {
	// Name is that of the metric, and that under which it is logged; with an Output, as in Keras, "<output>_<name>".
	Name string
	// Metric is gathered over an epoch, or over an evaluation. Its inputs are labels and output. Beside a loss
	// masked_sparse_categorical_crossentropy of the same Output and Label, labels below 0 weigh 0 in it, and in a metric by name.
	Metric metrics.Metric
	// Func is a value for each example, or a scalar of the batch, of which the mean over all examples is the figure.
	Func func(labels, output *managed.Node) *managed.Node
	// Output and Label are as in [Loss].
	Output, Label string
	// Weighted has the sample weights count, and while training the class weights, as Keras's weighted_metrics: the figure is divided by
	// the sum of the weights. Where its examples have neither, it is an error.
	Weighted bool
}

func (m Metric) logged() string {
	if m.Output != "" {
		return m.Output + "_" + m.Name
	}
	return m.Name
}

// figure makes a metric for an output: how many classes there are is known then.
type figure func(output *managed.Node) metrics.Metric

// metricsByName has Keras's names and the short ones.
var metricsByName = map[string]figure{
	"accuracy":                          accuracy,
	"acc":                               accuracy,
	"sparse_categorical_accuracy":       fixed(metrics.Accuracy),
	"categorical_accuracy":              fixed(metrics.Accuracy),
	"binary_accuracy":                   func(*managed.Node) metrics.Metric { return binary(metrics.Accuracy()) },
	"top_5_accuracy":                    fixed(func() metrics.Metric { return metrics.TopK(5) }),
	"sparse_top_k_categorical_accuracy": fixed(func() metrics.Metric { return metrics.TopK(5) }),
	"mean_squared_error":                errorMetric(metrics.MeanSquaredError),
	"mse":                               errorMetric(metrics.MeanSquaredError),
	"root_mean_squared_error":           errorMetric(metrics.RootMeanSquaredError),
	"rmse":                              errorMetric(metrics.RootMeanSquaredError),
	"mean_absolute_error":               errorMetric(metrics.MeanAbsoluteError),
	"mae":                               errorMetric(metrics.MeanAbsoluteError),
	"r2_score":                          errorMetric(metrics.R2),
	"r2":                                errorMetric(metrics.R2),
	"cosine_similarity":                 errorMetric(metrics.CosineSimilarity),
	"perplexity":                        fixed(metrics.Perplexity),
	"crossentropy":                      fixed(metrics.CrossEntropy),
	"precision":                         scored(metrics.Precision),
	"recall":                            scored(metrics.Recall),
	"f1_score":                          scored(metrics.F1),
	"f1":                                scored(metrics.F1),
	"mean_iou":                          meanIoU,
	"pearson_correlation":               errorMetric(metrics.Pearson),
	"concordance_correlation":           errorMetric(metrics.Concordance),
	"log_cosh":                          meanOf(logCosh),
	"mean_absolute_percentage_error":    meanOf(percentageError),
	"mape":                              meanOf(percentageError),
	"mean_squared_logarithmic_error":    meanOf(squaredLogarithmicError),
	"msle":                              meanOf(squaredLogarithmicError),
	"poisson":                           meanOf(poisson),
	"hinge":                             meanOf(hinge),
	"squared_hinge":                     meanOf(squaredHinge),
	"categorical_hinge":                 meanOf(categoricalHinge),
	"kl_divergence":                     meanOf(divergence),
	"categorical_crossentropy":          meanOf(crossEntropy),
	"binary_crossentropy":               meanOf(binaryCrossEntropy),
	"auc":                               func(*managed.Node) metrics.Metric { return probable(metrics.AUC(200)) },
}

func fixed(of func() metrics.Metric) figure {
	return func(*managed.Node) metrics.Metric { return of() }
}

// accuracy is what fits the output, as Keras's "accuracy" is: of two classes if it has one number for each example.
func accuracy(output *managed.Node) metrics.Metric {
	if oneEach(output) {
		return binary(metrics.Accuracy())
	}
	return metrics.Accuracy()
}

// scored is a metric of classes: macro over all, or of class 1 of two.
func scored(of func(classes int, average metrics.Average) metrics.Metric) figure {
	return func(output *managed.Node) metrics.Metric {
		if oneEach(output) {
			return binary(of(2, metrics.Binary))
		}
		return of(classesOf(output), metrics.Macro)
	}
}

func meanIoU(output *managed.Node) metrics.Metric {
	if oneEach(output) {
		return binary(metrics.MeanIoU(2))
	}
	return metrics.MeanIoU(classesOf(output))
}

func oneEach(output *managed.Node) bool { return output.Rank() < 2 || classesOf(output) == 1 }

// binary has classes made of logits and of labels that are 0 or 1 in any type.
func binary(m metrics.Metric) metrics.Metric {
	return metrics.MapInputs(m, func(in []*managed.Node) []*managed.Node {
		labels := same("binary metric", in[0], in[1])
		return []*managed.Node{metrics.Threshold(labels, 0.5), metrics.Threshold(in[1], 0)}
	})
}

func probable(m metrics.Metric) metrics.Metric {
	return metrics.MapInputs(m, func(in []*managed.Node) []*managed.Node {
		return []*managed.Node{same("auc", in[0], in[1]), graph.Sigmoid(in[1])}
	})
}

// errorMetric has labels [batch] fit an output [batch, 1].
func errorMetric(of func() metrics.Metric) figure {
	return func(*managed.Node) metrics.Metric {
		return metrics.MapInputs(of(), func(in []*managed.Node) []*managed.Node {
			return []*managed.Node{same("metric", in[0], in[1]), in[1]}
		})
	}
}

// meanOf is the mean of a loss.
func meanOf(f LossFunc) figure {
	return fixed(func() metrics.Metric {
		return metrics.MapInputs(metrics.Mean(), func(in []*managed.Node) []*managed.Node {
			return []*managed.Node{perExample(f(in[0], in[1]))}
		})
	})
}
