package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/metrics"
)

// Metric is a metric of a model. It needs a Name that [WithMetrics] knows, or a Name and either a Metric or a Func.
type Metric struct {
	// Name is the name in the logs; with an Output it is "<output>_<name>".
	Name string
	// Metric accumulates labels and output over an epoch or an evaluation. With labels [batch] an output [batch, 1] is
	// given as [batch]. Labels below 0 have weight 0 if the same Output and Label have the loss
	// masked_sparse_categorical_crossentropy, also in a metric by name.
	Metric metrics.Metric
	// Func gets both as in [Loss]. It returns values for examples, or a scalar of the batch; the metric is the mean over
	// all examples.
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

type figure func(output *graph.Node, are scale) metrics.Metric

var metricsByName = map[string]figure{
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

func (m *Model) byName(metric Metric, out map[string]*graph.Node, labels, output *graph.Node) metrics.Metric {
	weights := ""
	if metric.Weighted {
		weights = m.set.weights
	}
	field := labelOf(out, metric.Output, metric.Label)
	instead, compares := ofClasses[metric.Name]
	if !compares {
		if l := (Loss{Name: metric.Name}); l.check() == nil {
			if r := labelsOf(l, field, output, weights); r.classes() || r.low >= 0 {
				m.seen.take(r)
			}
			if r, ok := rowsOf(l, field, output, weights); ok {
				m.seen.take(r)
			}
		}
		return metricsByName[metric.Name](output, scale{})
	}
	are := m.set.scaleOf(metric, out, output)
	if instead != "" {
		outputs.SeveralClasses(fmt.Sprintf("metric %q", metric.Name), output, instead)
	}
	if made := outputs.MadeBy(output); made != "" && instead == "binary_crossentropy" {
		panic(fmt.Errorf("metric %q: the output went through a %s, expected logits: the metric has a softmax in it", metric.Name, made))
	}
	r := m.classLabels(metric.Name, field, labels, output)
	m.set.besides(metric, out, func(l Loss) bool {
		of := labelsOf(l, field, output, "")
		if l.Func != nil || !of.classes() || ranks[metric.Name] && !of.signs {
			return false
		}
		r = of
		return true
	})
	r.weights = weights
	m.seen.take(r)
	several := labels.Shape().EqualDimensions(output.Shape()) && !oneEach(output) && (outputs.MadeBy(output) == "sigmoid" ||
		m.set.besides(metric, out, func(l Loss) bool { return l.kind().binary }))
	if scores := scoresByName[metric.Name]; several && scores != nil {
		return are.binary(metrics.MultiLabel(scores(outputs.Classes(output), metrics.Macro)))
	}
	if of, ok := m.oneClass(metric, field, labels, output, r); ok {
		m.seen.take(of)
	}
	return metricsByName[metric.Name](output, are)
}

func (m *Model) classLabels(name, field string, labels, output *graph.Node) bound {
	r := bound{field: field, kind: "label"}
	switch two := oneEach(output) || name == "binary_accuracy"; {
	case ranks[name]:
		r.whole, r.high, r.why = true, 1, fmt.Sprintf("the metric %q ranks examples of the classes 0 and 1, and a label between them is neither (Keras counts it as 1): "+
			"smooth labels by Smoothing of the Loss, or leave the metric out", name)
	case two:
		r.whole, r.high, r.why = true, 1, fmt.Sprintf("the metric %q compares classes, 0 and 1 here; for numbers use mae, rmse or r2", name)
	case labels.DType().IsInt():
		r.class, r.high = true, float64(outputs.Classes(output)-1)
		r.why, r.hint = fmt.Sprintf("the output has %d, and the metric %q compares them", outputs.Classes(output), name), "make the last layer wider, or number the classes from 0"
	default:
		r.low, r.high, r.why = -rounding, 1+rounding, fmt.Sprintf("the metric %q compares classes, and takes labels of this shape as their probabilities", name)
	}
	return r
}

func (m *Model) oneClass(metric Metric, field string, labels, output *graph.Node, r bound) (bound, bool) {
	if labels.DType().IsInt() || oneEach(output) || r.signs || !labels.Shape().EqualDimensions(output.Shape()) || notLikeliest[metric.Name] {
		return bound{}, false
	}
	return bound{field: field, kind: "sum of labels", weights: r.weights, row: outputs.Classes(output), why: fmt.Sprintf(
		"the metric %q takes the likeliest class, so the labels of an example have the sum 1 (or 0, which is class 0, as in Keras); for several labels use binary_accuracy", metric.Name)}, true
}

var ranks = map[string]bool{"auc": true, "average_precision": true}

var notLikeliest = map[string]bool{"binary_accuracy": true, "auc": true, "average_precision": true, "perplexity": true, "crossentropy": true}

func fixed(of func() metrics.Metric) figure {
	return func(*graph.Node, scale) metrics.Metric { return of() }
}

func accuracy(output *graph.Node, are scale) metrics.Metric {
	if oneEach(output) {
		return are.binary(metrics.Accuracy())
	}
	return metrics.Accuracy()
}

func scored(name string) figure {
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

func errorMetric(of func() metrics.Metric) figure {
	return func(*graph.Node, scale) metrics.Metric {
		return metrics.MapInputs(of(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{outputs.Same("metric", in[0], in[1]), in[1]}
		})
	}
}

func columnMetric(of func(columns int) metrics.Metric) figure {
	return func(output *graph.Node, are scale) metrics.Metric {
		columns := 1
		if output.Rank() > 1 {
			columns = outputs.Classes(output)
		}
		return errorMetric(func() metrics.Metric { return of(columns) })(output, are)
	}
}

func meanOf(f losses.Func) figure {
	return fixed(func() metrics.Metric {
		return metrics.MapInputs(metrics.Mean(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{f(in[0], in[1])}
		})
	})
}
