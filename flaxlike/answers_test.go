//lazo:norace
package flaxlike_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
	"github.com/lazo-ml/lazo/xla"
)

// One example of several classes is one example, and not as many as it has classes: its array has the axis of the
// examples, as that of many has, with a calibration for each class too.
func TestS30_oneExampleIsOne(t *testing.T) {
	x := []float32{0, 3, 1, 2, -1, -2, -3, -1, 4}
	set := must.M1(data.New(data.X(x, 3, 3), data.Y([]int32{1, 0, 2}, 3)))
	m := logits(t, sparse)
	all := must.M1(m.Predict(t.Context(), set))
	require.Equal(t, []int32{1, 0, 2}, must.M1(all.Classes()).Flat)
	for i := range 3 {
		one := must.M1(m.PredictOne(t.Context(), data.X(x[3*i:3*i+3], 3)))
		require.Equal(t, 1, one.Len())
		require.Equal(t, data.Array{Flat: []int32{[]int32{1, 0, 2}[i]}, Dims: []int{1}}, must.M1(one.Classes()))
		require.Equal(t, must.M1(all.Probabilities()).Slice(i, i+1), must.M1(one.Probabilities()))
		require.Equal(t, must.M1(all.Labels())[i:i+1], must.M1(one.Labels()))
	}

	several := logits(t, "binary_crossentropy")
	require.NoError(t, several.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(x[:3], 1, 3)}}))
	require.NoError(t, several.SetCalibration("", decision.Calibration{Scale: 1}, decision.Calibration{Scale: 1, Shift: -9}, decision.Calibration{Scale: 1, Shift: 9}))
	require.NoError(t, several.SetThresholds("", 0.2, 0.3, 0.9))
	all = must.M1(several.Predict(t.Context(), set))
	for i := range 3 {
		one := must.M1(several.PredictOne(t.Context(), data.X(x[3*i:3*i+3], 3)))
		require.Equal(t, must.M1(all.Probabilities()).Slice(i, i+1), must.M1(one.Probabilities()))
		require.Equal(t, must.M1(all.Classes()).Slice(i, i+1), must.M1(one.Classes()))
		require.Equal(t, must.M1(all.Labels())[i:i+1], must.M1(one.Labels()))
	}
	require.Equal(t, [][]string{{"0", "2"}, {"0", "2"}, {"2"}}, must.M1(all.Labels()), "of any number of classes")
}

// Other outputs, as means, are taken as they are, with the model's names, and without its calibration and thresholds.
func TestPrediction_withOutputs(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, -1, 3, -3}, 2, 2)))
	m := newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }), flaxlike.WithLoss("binary_crossentropy"),
		flaxlike.WithClasses([]string{"left", "right"}))
	require.Empty(t, m.Summary().Outputs)
	must.M1(m.Predict(t.Context(), set))
	require.NoError(t, m.SetThresholds("", 0.9))
	require.Equal(t, map[string]string{"preds": "multi-label"}, m.Summary().Outputs)
	p := must.M1(m.Predict(t.Context(), set))
	mean := data.Array{Flat: []float32{0.4, 0.6, 1, 0}, Dims: []int{2, 2}}
	q := must.M1(p.WithOutputs(map[string]data.Array{"preds": mean}))
	require.Equal(t, mean, must.M1(q.Probabilities()))
	require.Equal(t, [][]string{{"right"}, {"left"}}, must.M1(q.Labels()))
	require.Equal(t, [][]string{{}, {"left"}}, must.M1(p.Labels()))
	for want, outputs := range map[string]map[string]data.Array{
		`flaxlike: with outputs: output "p": unknown name; the prediction has ["preds"]`: {"p": mean},
		`it has 3, expected probabilities, 0 to 1`:                                       {"preds": {Flat: []float32{1, 3}, Dims: []int{2, 1}}},
		`it has dims []`:      {"preds": {Flat: []float32{1}}},
		`example 0 has a NaN`: {"preds": {Flat: []float64{math.NaN()}, Dims: []int{1}}},
	} {
		_, err := p.WithOutputs(outputs)
		require.ErrorContains(t, err, want)
	}
}

// The answers for chosen examples are those of Predict, with the same labels.
func TestPrediction_gather(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{0, 3, 1, 2, -1, -2, -3, -1, 4}, 3, 3)))
	m := logits(t, sparse)
	all := must.M1(m.Predict(t.Context(), set))
	some := must.M1(all.Gather([]int{2, 0, 2}))
	require.Equal(t, 3, some.Len())
	require.Equal(t, []int32{2, 1, 2}, must.M1(some.Classes()).Flat)
	require.Equal(t, []int32{1, 0, 2}, must.M1(all.Classes()).Flat)
	for _, row := range []int{-1, 3} {
		_, err := all.Gather([]int{0, row})
		require.ErrorContains(t, err, "of a prediction of 3 examples")
	}
}

// Outputs of different sizes in two batches are no array: Predict is an error, and PredictBatches returns them.
func TestPredict_ofSizesThatDiffer(t *testing.T) {
	set := must.M1(must.M1(data.New(data.X([]float32{1, 0, 1, 1}, 2, 2))).MapBatches(func(b data.Batch) (data.Batch, error) {
		if x := b.Fields[0].Array.Flat.([]float32); x[len(x)-1] == 0 {
			b.Fields = []data.Field{data.X(x[:1], 1, 1)}
		}
		return b, nil
	}))
	same := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x })
	m := newModel(t, same, flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(1))
	_, err := m.Predict(t.Context(), set)
	require.ErrorContains(t, err, `flaxlike: predict: output "preds": an example's output is [1] in one batch and [2] in another: PredictBatches`)
	n := 0
	for p, err := range m.PredictBatches(t.Context(), set.Batches(1)) {
		require.NoError(t, err)
		n += must.M1(p.Output()).Size()
	}
	require.Equal(t, 3, n)
}

// Metrics of precision and recall over all thresholds take labels [n] and outputs [n, 1], as "auc" does, by name and as
// a value; logits become probabilities for the name.
func TestS35_averagePrecision(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{-2, 1, 0.5, 3, -1, 2}, 6, 1), data.Y([]int32{0, 1, 0, 1, 1, 0}, 6)))
	same := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x })
	own := flaxlike.Metric{Name: "own", Metric: metrics.MapInputs(metrics.AveragePrecision(200), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{in[0], graph.Sigmoid(in[1])}
	})}
	m := newModel(t, same, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics(own), flaxlike.WithMetrics("average_precision", "auc"))
	figures := must.M1(m.Evaluate(t.Context(), set))
	want := (1 + 2.0/3 + 3.0/5) / 3 // scikit-learn's average_precision_score: the ones are first, third and fifth
	require.InDelta(t, want, figures["average_precision"], 1e-6)
	require.InDelta(t, want, figures["own"], 1e-6)
	require.InDelta(t, 6.0/9, figures["auc"], 1e-6)
}

// The values of each class and of each threshold are numbers of their own, by their names.
func TestEvaluate_metricsOfSeveralValues(t *testing.T) {
	set := must.M1(data.New(data.Named("a", []float32{3, 1, 0, 1, 2, 0, 0, 1, 2}, 3, 3), data.Named("kind", []int32{0, 1, 1}, 3),
		data.Named("b", []float32{0.5, 0.9, 0.8}, 3, 1), data.Named("yes", []float32{1, 1, 0}, 3)))
	m := newModel(t, asIs(nil, "a", "b"), flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "a", Label: "kind"}), flaxlike.WithMetrics(
		flaxlike.Metric{Name: "recall", Output: "a", Label: "kind", Metric: metrics.Each(metrics.Recall(3, metrics.PerClass), "cat", "dog", "cow")},
		flaxlike.Metric{Name: "recall", Output: "b", Label: "yes", Metric: metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.3, 0.7)}))
	figures := must.M1(m.Evaluate(t.Context(), set))
	for name, want := range map[string]float64{"a_recall/cat": 1, "a_recall/dog": 0.5, "a_recall/cow": 0, "b_recall/0.3": 1, "b_recall/0.7": 0.5} {
		require.Contains(t, figures, name)
		require.InDelta(t, want, figures[name], 1e-9, name)
	}
}

// The thresholds of one output are chosen without those of another.
func TestS36_thresholdsOfOneOutput(t *testing.T) {
	m := newModel(t, asIs(nil, "a", "b", "c"), flaxlike.WithLoss(flaxlike.Loss{Name: "binary_crossentropy", Output: "a", Label: "y"},
		flaxlike.Loss{Name: "binary_crossentropy", Output: "b", Label: "y"}, flaxlike.Loss{Name: sparse, Output: "c", Label: "y"}))
	set := must.M1(data.New(data.Named("a", []float32{-1, 1, 2, 3}, 4, 1), data.Named("b", []float32{3, 1, 2, 1.5}, 4, 1),
		data.Named("c", make([]float32, 8), 4, 2), data.Y([]int32{0, 1, 0, 1}, 4)))
	must.M1(m.ChooseThresholds(t.Context(), set, decision.Aim{}))
	before := m.Describe().Thresholds
	require.Len(t, before, 2)
	found := must.M1(m.ChooseThresholds(t.Context(), set, decision.Aim{Precision: 1}, "a"))
	require.Len(t, found, 1)
	require.NotEqual(t, before["a"], m.Describe().Thresholds["a"])
	require.Equal(t, before["b"], m.Describe().Thresholds["b"])
	_, err := m.ChooseThresholds(t.Context(), set, decision.Aim{}, "c")
	require.ErrorContains(t, err, "and the likeliest is predicted")
	_, err = m.ChooseThresholds(t.Context(), set, decision.Aim{}, "d")
	require.ErrorContains(t, err, `output "d": unknown name; the model has ["a" "b" "c"]`)
}

// An integer outside of the vocabulary is the client's fault, and its text says which one.
func TestS36_outsideOfTheVocabularyIs400(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 10, Width: 2}, nn.Flatten{}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"))
	b := must.M1(serve.New(m, data.Batch{Fields: []data.Field{data.X([]int32{1, 2}, 1, 2)}}, serve.Batching{}))
	defer b.Close()
	require.NoError(t, b.Warm(t.Context()))
	server := httptest.NewServer(must.M1(serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})))
	defer server.Close()
	answer := must.M1(http.Post(server.URL+"/v2/models/m/infer", "application/json",
		strings.NewReader(`{"inputs": [{"name": "x", "datatype": "INT32", "shape": [1, 2], "data": [3, 10]}]}`)))
	defer answer.Body.Close()
	text := string(must.M1(io.ReadAll(answer.Body)))
	require.Equal(t, http.StatusBadRequest, answer.StatusCode, text)
	require.Contains(t, text, `wrong input: predict: field \"x\": integer 10 of example 0 in the batch is outside of the classes 0…9: the Embedding has 10`)
}

// The card has the figures of the epoch whose state the model has.
func TestS36_cardOfTheBestEpoch(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]float32{2, 4, 6, 8}, 4, 1)))
	for _, rate := range []float64{0.3, 0.001} { // the losses rise, or fall
		dir := t.TempDir()
		for _, best := range []loop.Option{callbacks.KeepBest("val_loss"),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(1)), checkpoint.KeepBest("val_loss")),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(1)), checkpoint.KeepBest("val_loss"))} { // the run has ended: nothing is trained
			m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(rate), flaxlike.WithBatchSize(4))
			history := must.M1(m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 4, Validation: set, Output: io.Discard, Callbacks: []loop.Option{best}}))
			losses := series(t, history, "val_loss")
			require.Equal(t, slices.Min(losses), m.Describe().Card.Fit["val_loss"])
			require.Equal(t, rate == 0.3, slices.Min(losses) != losses[3])
			require.Regexp(t, map[float64]string{0.3: `trained to +epoch 1, in a Fit of 4 epochs\n`, 0.001: `trained to +epoch 4\n`}[rate], m.Describe().String())
			require.NotRegexp(t, `\n +epoch`, m.Describe().String())
			require.InDelta(t, slices.Min(losses), must.M1(m.Evaluate(t.Context(), set))["loss"], 1e-6*losses[0])
		}
	}
}

// A nil context is an error of the function that was given it, and no panic.
func TestS36_nilContext(t *testing.T) {
	var none context.Context
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	set := must.M1(data.New(data.X([]float32{1, 2}, 2, 1), data.Y([]float32{2, 4}, 2, 1)))
	must.M1(m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 1, Output: io.Discard}))
	path := filepath.Join(t.TempDir(), "m.safetensors")
	must.M(m.Save(path))
	folder := must.M1(checkpoint.Open(t.TempDir(), checkpoint.Options{}))
	defer folder.Close()
	for name, f := range map[string]func() error{
		"xla.Open":  func() error { _, err := xla.Open(none, xla.CPU); return err },
		"New":       func() error { _, err := flaxlike.New(none, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")); return err },
		"Open":      func() error { _, err := flaxlike.Open(none, path); return err },
		"Fit":       func() error { _, err := m.Fit(none, set, flaxlike.Fit{Epochs: 1}); return err },
		"Evaluate":  func() error { _, err := m.Evaluate(none, set); return err },
		"Predict":   func() error { _, err := m.Predict(none, set); return err },
		"TrainStep": func() error { _, _, err := m.TrainStep(none, data.Batch{Fields: set.Fields(), Size: 2}); return err },
		"Content":   func() error { _, err := m.State().(checkpoint.State).Content(none); return err },
		"Save":      func() error { return folder.Save(none, 1, checkpoint.Content{}) },
	} {
		require.ErrorContains(t, f(), "the context is nil, expected one such as context.Background()", name)
	}
}
