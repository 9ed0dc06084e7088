package flaxlike_test

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	gomodel "github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// kerasArray is an array of metrics/testdata/keras_cases.json.gz.
type kerasArray struct {
	Shape []int
	Type  string
	Flat  []any
}

// floats are the numbers of an array.
func (a *kerasArray) floats() []float64 {
	list := make([]float64, len(a.Flat))
	for i, v := range a.Flat {
		switch v := v.(type) {
		case float64:
			list[i] = v
		case bool:
			if v {
				list[i] = 1
			}
		case string:
			list[i] = map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)}[v]
		}
	}
	return list
}

// kerasNumbers are those of several updates in one array.
type kerasNumbers struct {
	dims  []int
	flat  []float64
	whole bool
}

func (n *kerasNumbers) each(f func(float64) float64) *kerasNumbers {
	for i, v := range n.flat {
		n.flat[i] = f(v)
	}
	return n
}

func (n *kerasNumbers) field(name string) data.Field {
	if n.whole {
		return data.Named(name, converted[int32](n.flat), n.dims...)
	}
	return data.Named(name, converted[float32](n.flat), n.dims...)
}

func (n *kerasNumbers) tensor() *tensors.Tensor {
	if n.whole {
		return tensors.FromFlatDataAndDimensions(converted[int32](n.flat), n.dims...)
	}
	return tensors.FromFlatDataAndDimensions(converted[float32](n.flat), n.dims...)
}

func converted[T int32 | float32](flat []float64) []T {
	list := make([]T, len(flat))
	for i, v := range flat {
		list[i] = T(v)
	}
	return list
}

// kerasCase is a result of a class of Keras.
type kerasCase struct {
	Source, Kind, Name string
	Options            map[string]any
	Updates            [][]*kerasArray
	Result             *kerasArray
}

func (c *kerasCase) String() string {
	return fmt.Sprintf("%s.%s %v of %v", c.Kind, c.Name, c.Options, c.shapes())
}

func (c *kerasCase) shapes() (list []any) {
	for _, a := range c.Updates[0] {
		if a != nil {
			list = append(list, a.Type, a.Shape)
		}
	}
	return list
}

// is reports whether an option has a value, or is absent.
func (c *kerasCase) is(option string, value any) bool {
	v, ok := c.Options[option]
	return !ok || fmt.Sprint(v) == fmt.Sprint(value)
}

func (c *kerasCase) number(option string) float64 { v, _ := c.Options[option].(float64); return v }

// joined are the inputs of all updates; weights are nil without any.
func (c *kerasCase) joined() (inputs []*kerasNumbers, weights *kerasNumbers, ok bool) {
	last := len(c.Updates[0]) - 1
	all := make([]*kerasNumbers, last+1)
	for _, u := range c.Updates {
		n := 1
		if len(u[0].Shape) > 0 {
			n = u[0].Shape[0]
		}
		for i, a := range u {
			if a == nil && i == last {
				if all[i] != nil {
					return nil, nil, false
				}
				continue
			}
			dims, flat := slices.Clone(a.Shape), a.floats()
			if len(dims) == 0 {
				dims = []int{n}
				for len(flat) < n {
					flat = append(flat, flat[0])
				}
			}
			if all[i] == nil {
				all[i] = &kerasNumbers{dims: slices.Clone(dims), whole: a.Type != "float"}
				all[i].dims[0] = 0
			}
			if !slices.Equal(all[i].dims[1:], dims[1:]) || dims[0] == 0 {
				return nil, nil, false
			}
			all[i].dims[0] += dims[0]
			all[i].flat = append(all[i].flat, flat...)
			all[i].whole = all[i].whole && a.Type != "float"
		}
	}
	if all[last] != nil {
		all[last].whole = false
		if all[last].dims[0] != all[0].dims[0] {
			return nil, nil, false
		}
	}
	return all[:last], all[last], true
}

// replay runs a row in lazo.
type replay struct {
	name   string         // of a loss or metric, or
	metric metrics.Metric // gathered by itself
	loss   flaxlike.Loss
	output func(float64) float64         // of the output's numbers, nil for none
	beside string                        // the loss that says what the output's numbers are
	result func(got []float64) []float64 // of what lazo gives
}

func logit(p float64) float64 {
	p = min(max(p, 1e-7), 1-math.Pow(2, -23))
	return math.Log(p / (1 - p))
}

func logOf(p float64) float64 { return math.Log(max(p, 1e-30)) }

var kerasLosses = map[string]string{"MeanSquaredError": "mse", "MeanAbsoluteError": "mae", "MeanAbsolutePercentageError": "mape",
	"MeanSquaredLogarithmicError": "msle", "Huber": "huber", "LogCosh": "log_cosh", "Poisson": "poisson", "CosineSimilarity": "cosine_similarity",
	"Hinge": "hinge", "SquaredHinge": "squared_hinge", "CategoricalHinge": "categorical_hinge", "KLDivergence": "kl_divergence",
	"CategoricalCrossentropy": "categorical_crossentropy", "BinaryCrossentropy": "binary_crossentropy",
	"SparseCategoricalCrossentropy": sparse, "CategoricalFocalCrossentropy": "categorical_focal_crossentropy",
	"BinaryFocalCrossentropy": "binary_focal_crossentropy", "Dice": "dice", "Tversky": "tversky"}

// ofLoss returns lazo's form of a loss of Keras; why is "" if there is one.
func ofLoss(c *kerasCase) (r replay, why string) {
	name, ok := kerasLosses[c.Name]
	switch {
	case !ok:
		return r, "no such loss by name"
	case !c.is("reduction", "sum_over_batch_size") && !c.is("reduction", nil) && !c.is("reduction", "sum"):
		return r, "reduction mean_with_sample_weight"
	case !c.is("axis", -1.0) && !c.is("axis", nil):
		return r, "another axis"
	case c.Name == "Tversky" && (!c.is("alpha", 0.5) || !c.is("beta", 0.5)):
		return r, "another alpha or beta"
	}
	r.loss = flaxlike.Loss{Name: name, Smoothing: c.number("label_smoothing"), Delta: c.number("delta")}
	if strings.Contains(c.Name, "Focal") {
		if r.loss.Gamma = cmp.Or(c.number("gamma"), 1e-30); c.Name != "BinaryFocalCrossentropy" || c.is("apply_class_balancing", true) {
			r.loss.Alpha = c.number("alpha")
		}
	}
	if !c.is("ignore_class", nil) {
		r.loss.Name, r.loss.Ignore = masked, []int{int(c.number("ignore_class"))}
	}
	if !c.is("from_logits", true) {
		r.output = logOf
		if strings.HasPrefix(c.Name, "Binary") {
			r.output = logit
		}
	}
	if c.Name == "KLDivergence" {
		r.output = logOf
	}
	return r, ""
}

// ofMetric returns lazo's form of a metric of Keras.
func ofMetric(c *kerasCase) (r replay, why string) {
	wide := 1
	if shape := c.Updates[0][len(c.Updates[0])-2].Shape; len(shape) > 1 {
		wide = shape[len(shape)-1]
	}
	named := map[string]string{"MeanSquaredError": "mse", "RootMeanSquaredError": "rmse", "MeanAbsoluteError": "mae", "MeanAbsolutePercentageError": "mape",
		"MeanSquaredLogarithmicError": "msle", "LogCoshError": "log_cosh", "R2Score": "r2_score", "CosineSimilarity": "cosine_similarity",
		"Poisson": "poisson", "Hinge": "hinge", "SquaredHinge": "squared_hinge", "CategoricalHinge": "categorical_hinge",
		"PearsonCorrelation": "pearson_correlation", "ConcordanceCorrelation": "concordance_correlation", "CategoricalAccuracy": "categorical_accuracy",
		"SparseCategoricalAccuracy": "sparse_categorical_accuracy"}
	averages := map[any]metrics.Average{nil: metrics.PerClass, "micro": metrics.Micro, "macro": metrics.Macro, "weighted": metrics.Weighted}
	cut := func(m metrics.Metric, at float64) metrics.Metric { // of two classes by a threshold
		return metrics.MapInputs(m, func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{metrics.Threshold(in[0], 0.5), metrics.Threshold(in[1], at)}
		})
	}
	threshold := 0.5
	var several []float64
	switch v := c.Options["thresholds"].(type) {
	case float64:
		threshold = v
	case []any:
		for _, at := range v {
			several = append(several, at.(float64))
		}
	}
	if v, ok := c.Options["threshold"].(float64); ok {
		threshold = v
	}
	ids := func(got []float64) []float64 {
		var sum float64
		list, _ := c.Options["target_class_ids"].([]any)
		for _, id := range list {
			sum += got[int(id.(float64))]
		}
		return []float64{sum / float64(len(list))}
	}
	cell := func(row, column int) (replay, string) {
		of := func(got []float64) (all []float64) {
			for matrix := range slices.Chunk(got, 4) {
				all = append(all, matrix[2*row+column])
			}
			return all
		}
		if len(several) > 0 {
			return replay{metric: metrics.AtThresholds(metrics.ConfusionMatrix(2), several...), result: of}, ""
		}
		return replay{metric: cut(metrics.ConfusionMatrix(2), threshold), result: of}, ""
	}
	classes, thresholds := int(c.number("num_classes")), int(c.number("num_thresholds"))
	switch {
	case !c.is("axis", -1.0):
		return r, "another axis"
	case !c.is("ignore_class", nil):
		return r, "ignore_class"
	case !c.is("from_sorted_ids", false):
		return r, "from_sorted_ids"
	case !c.is("class_id", nil) && !c.is("top_k", nil):
		return r, "class_id and top_k"
	case c.Name == "R2Score" && (!c.is("class_aggregation", "uniform_average") || !c.is("num_regressors", 0)):
		return r, "class_aggregation or num_regressors"
	case !c.is("label_smoothing", 0):
		return r, "label_smoothing of a metric"
	}
	if name := named[c.Name]; name != "" {
		return replay{name: name}, ""
	}
	column := func(m metrics.Metric) metrics.Metric { // of one class alone
		return metrics.MapInputs(m, func(in []*graph.Node) []*graph.Node {
			if c.is("class_id", nil) {
				return in
			}
			at := graph.AxisElem(int(c.number("class_id")))
			return []*graph.Node{graph.Slice(in[0], graph.AxisRange().Spacer(), at), graph.Slice(in[1], graph.AxisRange().Spacer(), at)}
		})
	}
	switch c.Name {
	case "KLDivergence":
		return replay{name: "kl_divergence", output: logOf}, ""
	case "BinaryAccuracy":
		if threshold == 0.5 {
			return replay{name: "binary_accuracy", beside: "mse"}, ""
		}
		return replay{metric: cut(metrics.Accuracy(), threshold)}, ""
	case "BinaryCrossentropy", "CategoricalCrossentropy", "SparseCategoricalCrossentropy":
		r.name = map[string]string{"BinaryCrossentropy": "binary_crossentropy", "CategoricalCrossentropy": "categorical_crossentropy",
			"SparseCategoricalCrossentropy": "crossentropy"}[c.Name]
		if !c.is("from_logits", true) {
			if r.output = logOf; c.Name == "BinaryCrossentropy" {
				r.output = logit
			}
		}
		return r, ""
	case "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy":
		if k := int(c.number("k")); k != 5 {
			return replay{metric: metrics.TopK(k)}, ""
		}
		return replay{name: "top_5_accuracy"}, ""
	case "Accuracy":
		return replay{metric: metrics.MapInputs(metrics.Accuracy(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{graph.ConvertDType(in[0], dtypes.Int32), graph.ConvertDType(in[1], dtypes.Int32)}
		})}, ""
	case "Precision", "Recall":
		of := map[string]func(int, metrics.Average) metrics.Metric{"Precision": metrics.Precision, "Recall": metrics.Recall}[c.Name]
		m := of(2, metrics.Binary)
		switch k := int(c.number("top_k")); {
		case !c.is("class_id", nil):
			names := strings.Split("abcdefgh"[:wide], "")
			return replay{metric: metrics.Each(cut(metrics.MultiLabel(of(wide, metrics.PerClass)), threshold), names...), result: func(got []float64) []float64 {
				return got[int(c.number("class_id")):][:1]
			}}, ""
		case k > 0:
			if wide == 1 {
				wide = c.Updates[0][1].Shape[0] // a single example
			}
			if c.Updates[0][2] != nil && len(c.Updates[0][2].Shape) > 1 {
				return r, "weights of single labels"
			}
			if c.is("thresholds", nil) {
				threshold = -1
			}
			return replay{metric: metrics.MapInputs(metrics.MultiLabel(of(wide, metrics.Micro)), func(in []*graph.Node) []*graph.Node {
				labels, p := graph.Reshape(in[0], -1, wide), graph.Reshape(graph.ConvertDType(in[1], dtypes.Float32), -1, wide)
				return []*graph.Node{metrics.Threshold(labels, 0.5), graph.Min(metrics.Highest(p, k), metrics.Threshold(p, threshold))}
			})}, ""
		case len(several) > 0:
			return replay{metric: metrics.AtThresholds(m, several...)}, ""
		}
		if threshold == 0.5 && wide == 1 {
			return replay{name: strings.ToLower(c.Name), beside: "mse"}, ""
		}
		return replay{metric: cut(m, threshold)}, ""
	case "F1Score", "FBetaScore":
		beta, average := 1.0, averages[c.Options["average"]]
		if c.Name == "FBetaScore" {
			beta = c.number("beta")
		}
		if wide < 2 {
			return r, "F of one class"
		}
		if c.is("threshold", nil) {
			return replay{metric: metrics.FBeta(beta, wide, average)}, ""
		}
		return replay{metric: cut(metrics.MultiLabel(metrics.FBeta(beta, wide, average)), threshold)}, ""
	case "MeanIoU", "OneHotMeanIoU":
		return replay{metric: metrics.MeanIoU(classes)}, ""
	case "IoU", "OneHotIoU":
		return replay{metric: metrics.IoU(classes, metrics.PerClass), result: ids}, ""
	case "BinaryIoU":
		return replay{metric: cut(metrics.IoU(2, metrics.PerClass), threshold), result: ids}, ""
	case "AUC":
		if !c.is("multi_label", false) || !c.is("summation_method", "interpolation") || c.is("curve", "PRGAIN") {
			return r, "multi_label, summation_method or PRGAIN"
		}
		m := metrics.AUC(thresholds)
		if c.is("curve", "PR") {
			m = metrics.AveragePrecision(thresholds)
		}
		if c.is("from_logits", true) {
			return replay{metric: m, output: func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }}, ""
		}
		return replay{metric: m}, ""
	case "PrecisionAtRecall":
		return replay{metric: column(metrics.BestAt("precision", "recall", c.number("recall"), thresholds))}, ""
	case "RecallAtPrecision":
		return replay{metric: column(metrics.BestAt("recall", "precision", c.number("precision"), thresholds))}, ""
	case "SensitivityAtSpecificity":
		return replay{metric: column(metrics.BestAt("recall", "specificity", c.number("specificity"), thresholds))}, ""
	case "SpecificityAtSensitivity":
		return replay{metric: column(metrics.BestAt("specificity", "recall", c.number("sensitivity"), thresholds))}, ""
	case "TruePositives":
		return cell(1, 1)
	case "TrueNegatives":
		return cell(0, 0)
	case "FalsePositives":
		return cell(0, 1)
	case "FalseNegatives":
		return cell(1, 0)
	case "Mean":
		return replay{metric: metrics.Mean()}, ""
	case "Sum":
		return replay{metric: metrics.Sum()}, ""
	}
	return r, "no such metric"
}

// replayOf returns lazo's form of a row; why is "" if there is one.
func replayOf(c *kerasCase) (r replay, why string) {
	if c.Kind == "losses" {
		return ofLoss(c)
	}
	return ofMetric(c)
}

// inputs are the row's, as the replay takes them.
func (r replay) inputs(t *testing.T, c *kerasCase) (inputs []*kerasNumbers, weights *kerasNumbers) {
	inputs, weights, ok := c.joined()
	require.True(t, ok)
	output := inputs[len(inputs)-1]
	switch {
	case strings.Contains(c.Name, "TopK"), strings.HasPrefix(c.Name, "F"), strings.HasPrefix(c.Name, "OneHot"), c.Name == "AUC": // scores and one-hot labels are floats here
		output.whole = false
		inputs[0].whole = inputs[0].whole && len(inputs[0].dims) < len(output.dims)
	case strings.HasSuffix(c.Name, "IoU") && c.is("sparse_y_pred", true) && !strings.HasPrefix(c.Name, "OneHot") && c.Name != "BinaryIoU":
		output.whole = true
	}
	if r.output != nil {
		output.each(r.output)
	}
	return inputs, weights
}

// gathered is a row whose metric is gathered by itself.
type gathered struct {
	replay
	c   *kerasCase
	got []float64
	err error
}

// gather runs rows in one program, or each in its own if that fails.
func gather(t *testing.T, runtime *xla.Runtime, rows []*gathered) {
	var all []any
	var counts []int
	var weighed []bool
	for _, r := range rows {
		inputs, weights := r.inputs(t, r.c)
		for _, in := range inputs {
			all = append(all, in.tensor())
		}
		if weights != nil {
			all = append(all, weights.tensor())
		}
		counts, weighed = append(counts, len(inputs)), append(weighed, weights != nil)
	}
	out, err := graph.CallOnceN(runtime, func(all []*graph.Node) (results []*graph.Node) {
		for i, r := range rows {
			var w *graph.Node
			in := all[:counts[i]]
			if all = all[counts[i]:]; weighed[i] {
				w, all = all[0], all[1:]
			}
			var values []*graph.Node
			for _, v := range r.metric.Compute(r.metric.Update(metrics.Initial(r.metric, in[0].Graph()), w, in...)) {
				values = append(values, graph.Reshape(v.Node, -1))
			}
			results = append(results, graph.Concatenate(values, 0))
		}
		return results
	}, all...)
	if err != nil && len(rows) > 1 {
		for i := range rows {
			gather(t, runtime, rows[i:i+1])
		}
		return
	}
	for i, r := range rows {
		if r.err = err; err != nil {
			continue
		}
		r.got, err = tensors.CopyFlatData[float64](out[i])
		require.NoError(t, err)
		if r.result != nil {
			r.got = r.result(r.got)
		}
	}
}

// run runs a row by a model.
func (r replay) run(t *testing.T, runtime *xla.Runtime, c *kerasCase) ([]float64, error) {
	inputs, weights := r.inputs(t, c)
	output := inputs[len(inputs)-1]
	labels := inputs[0]
	output.whole = false
	labels.whole = labels.whole && (r.loss.Name == sparse || r.loss.Name == masked || strings.HasPrefix(r.name, "sparse") || r.name == "crossentropy" || r.name == "top_5_accuracy" && len(labels.dims) < len(output.dims))
	fields := []data.Field{output.field("x"), labels.field("y")}
	n := output.dims[0]
	options := []flaxlike.Option{flaxlike.WithBatchSize(n + 1)}
	if r.name != "" {
		options = []flaxlike.Option{flaxlike.WithBatchSize(max(1, n/2)), flaxlike.WithMetrics(flaxlike.Metric{Name: r.name, Weighted: weights != nil})}
		if r.beside != "" {
			options = append(options, flaxlike.WithLoss(r.beside))
		}
	} else {
		options = append(options, flaxlike.WithLoss(r.loss))
	}
	if weights != nil {
		fields, options = append(fields, weights.field("w")), append(options, flaxlike.WithSampleWeights("w"))
	}
	set, err := data.New(fields...)
	if err != nil {
		return nil, err
	}
	network := nn.Func(func(_ *gomodel.Scope, x *graph.Node) *graph.Node {
		if x.DType().IsFloat() {
			_ = graph.Equal(x, graph.Infinity(x.Graph(), x.DType(), 1)) // so that infinite predictions are taken, and no NaN
		}
		return x
	})
	model, err := flaxlike.New(t.Context(), network, append(options, flaxlike.WithStrategy(strategies.Jit(runtime)))...)
	require.NoError(t, err)
	defer model.Close()
	found, err := model.Evaluate(t.Context(), set)
	if err != nil {
		return nil, err
	}
	if r.name != "" {
		return []float64{found[r.name]}, nil
	}
	return []float64{found["loss"]}, nil
}

func readKerasCases(t *testing.T) (version string, rows []*kerasCase) {
	f, err := os.Open("../metrics/testdata/keras_cases.json.gz") // written by keras_cases.py there
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all struct {
		Keras string
		Rows  []*kerasCase
	}
	require.NoError(t, json.NewDecoder(z).Decode(&all))
	return all.Keras, all.Rows
}

// differing are the kinds of rows in which lazo's answer is not Keras's, as testdata/keras_differences.golden names
// them. A row belongs to the first that it fits; err is of an error here.
var differing = []struct {
	what string
	fits func(c *kerasCase, got []float64, err string) bool
}{
	{"all weights 0", func(c *kerasCase, got []float64, err string) bool {
		_, w, _ := c.joined()
		return w != nil && !slices.ContainsFunc(w.flat, func(v float64) bool { return v != 0 }) && (strings.Contains(err, "none would count") || err == "" && math.IsNaN(got[0]))
	}},
	{"labels 0 and 1", func(c *kerasCase, _ []float64, err string) bool { return strings.Contains(err, "takes only -1 and 1") }},
	{"labels below 0", func(c *kerasCase, _ []float64, err string) bool {
		return strings.Contains(err, "msle takes numbers from 0 on")
	}},
	{"labels that are no probabilities", func(c *kerasCase, _ []float64, err string) bool {
		return strings.Contains(err, "takes probabilities") || strings.Contains(err, "takes numbers from 0 to 1")
	}},
	{"one number an example", func(c *kerasCase, _ []float64, err string) bool {
		return strings.Contains(err, "has one number an example")
	}},
	{"predictions without the batch axis of the labels", func(c *kerasCase, _ []float64, err string) bool { return strings.Contains(err, "examples, but field") }},
	{"a label or prediction that is no class", func(c *kerasCase, got []float64, err string) bool {
		return strings.HasSuffix(c.Name, "IoU") && err == "" && math.IsNaN(got[0])
	}},
	{"fractions as weights", func(c *kerasCase, _ []float64, _ string) bool {
		_, w, _ := c.joined()
		return strings.HasSuffix(c.Name, "IoU") && w != nil && slices.ContainsFunc(w.flat, func(v float64) bool { return v != math.Trunc(v) })
	}},
	{"a class in neither labels nor predictions", func(c *kerasCase, _ []float64, err string) bool {
		return err == "" && (c.Name == "IoU" || c.Name == "BinaryIoU")
	}},
	{"curve=\"PR\"", func(c *kerasCase, _ []float64, err string) bool {
		return c.Name == "AUC" && c.is("curve", "PR") && err == ""
	}},
	{"3 thresholds, predictions of 0", func(c *kerasCase, _ []float64, err string) bool {
		return c.Name == "AUC" && c.is("num_thresholds", 3) && err == ""
	}},
	{"labels of one class alone", func(c *kerasCase, got []float64, err string) bool {
		return strings.Contains("AUC SensitivityAtSpecificity SpecificityAtSensitivity PrecisionAtRecall RecallAtPrecision", c.Name) && err == "" && math.IsNaN(got[0])
	}},
	{"an output that is NaN", func(_ *kerasCase, _ []float64, err string) bool {
		return strings.Contains(err, "input NaN of example")
	}},
	{"equal targets, or an infinite prediction", func(c *kerasCase, got []float64, _ string) bool {
		return c.Name == "R2Score" && len(got) == 1 && math.IsInf(got[0], -1)
	}},
	{"equal greatest scores", func(c *kerasCase, _ []float64, err string) bool {
		return (c.Name == "F1Score" || c.Name == "FBetaScore") && c.is("threshold", nil) && err == "" && tied(c)
	}},
	{"float32 near probability 1", func(c *kerasCase, got []float64, err string) bool {
		return c.Name == "BinaryFocalCrossentropy" && err == "" && math.Abs(got[0]/c.Result.floats()[0]-1) < 2e-3
	}},
}

// tied reports whether an example has its greatest score twice.
func tied(c *kerasCase) bool {
	for _, u := range c.Updates {
		p, n := u[1].floats(), u[1].Shape[len(u[1].Shape)-1]
		for row := range slices.Chunk(p, n) {
			most, times := slices.Max(row), 0
			for _, v := range row {
				if v == most {
					times++
				}
			}
			if times > 1 {
				return true
			}
		}
	}
	return false
}

// Keras's classes of metrics and losses, on the inputs of Keras's own tests and on drawn ones: lazo's results agree, or
// testdata/keras_differences.golden has both numbers of the first row.
func TestS22_kerasCases(t *testing.T) {
	version, rows := readKerasCases(t)
	runtime := plugintest.CPU(t, xla.KeepPrograms(len(rows)))
	agree, others, missing := 0, 0, 0
	kinds, numbers := map[string]map[string]bool{}, map[string]string{}
	note := func(c *kerasCase, what string, want []float64, here string) {
		if kinds[what] == nil {
			kinds[what], numbers[what] = map[string]bool{}, fmt.Sprintf("%s\t%s", sixDigits(want), here)
		}
		kinds[what][c.Name] = true
	}
	own := map[*kerasCase]*gathered{}
	var group []*gathered
	for i, c := range rows {
		r, why := replayOf(c)
		if _, _, ok := c.joined(); ok && why == "" && r.metric != nil {
			own[c] = &gathered{replay: r, c: c}
			group = append(group, own[c])
		}
		if len(group) == 10 || i+1 == len(rows) && len(group) > 0 {
			gather(t, runtime, group)
			group = nil
		}
	}
	for _, c := range rows {
		r, why := replayOf(c)
		want := c.Result.floats()
		if c.Kind == "losses" {
			var sum float64
			for _, v := range want {
				sum += v
			}
			n := float64(len(want))
			if c.is("reduction", "sum") {
				n = float64(c.Updates[0][0].Shape[0])
			}
			if !c.is("ignore_class", nil) && c.is("reduction", nil) && len(want) > 1 { // Keras's single values are 0 where a label is ignored
				n = float64(len(slices.DeleteFunc(c.Updates[0][0].floats(), func(v float64) bool { return v == c.number("ignore_class") })))
			}
			want = []float64{sum / n}
		}
		if _, _, ok := c.joined(); why == "" && !ok {
			why = "updates of several shapes, or a weight for all"
		}
		if why != "" {
			missing++
			note(c, why, want, "not here")
			continue
		}
		var got []float64
		var err error
		if g := own[c]; g != nil {
			got, err = g.got, g.err
		} else {
			got, err = r.run(t, runtime, c)
		}
		same, message, here := err == nil && len(got) == len(want), "", sixDigits(got)
		if err != nil {
			message, here = err.Error(), "error"
		}
		for i := 0; same && i < len(got); i++ {
			same = got[i] == want[i] || math.IsNaN(got[i]) && math.IsNaN(want[i]) || math.Abs(got[i]-want[i]) <= 2e-6*max(1, math.Abs(want[i]))
		}
		if same {
			agree++
			continue
		}
		others++
		at := slices.IndexFunc(differing, func(d struct {
			what string
			fits func(c *kerasCase, got []float64, err string) bool
		}) bool {
			return d.fits(c, got, message)
		})
		if at < 0 {
			t.Errorf("%s: Keras %v, here %v %.500s", c, want, got, message)
			continue
		}
		note(c, differing[at].what, want, here)
	}
	table := "# Where Keras's metrics and losses have other numbers than lazo: what differs; Keras's classes; of the first input Keras's number, lazo's.\n"
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		table += fmt.Sprintf("%s\t%s\t%s\n", what, strings.Join(slices.Sorted(maps.Keys(kinds[what])), " "), numbers[what])
	}
	golden.Equal(t, "testdata/keras_differences.golden", table)
	t.Logf("S22: Keras %s, %d rows: %d agree, %d differ, %d are of what is not here; %d rows in the table", version, len(rows), agree, others, missing, len(kinds))
}

// sixDigits are numbers to six digits.
func sixDigits(list []float64) string {
	var words []string
	for _, v := range list {
		words = append(words, fmt.Sprintf("%.6g", v))
	}
	return strings.Join(words, ", ")
}
