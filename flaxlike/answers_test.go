//lazo:norace
package flaxlike_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
	"github.com/lazo-ml/lazo/xla"
)

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
