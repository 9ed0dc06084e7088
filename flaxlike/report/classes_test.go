package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// A model with a preparation is reported by the table as it was read, with the labels that the preparation makes, or
// without labels.
func TestSave_ofATable(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []string{"1", "2", "3", "4"}, 4), data.Named("kind", []string{"fish", "cow", "fish", "cow"}, 4)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}, tables.Labels{Columns: []string{"kind"}}))
	m := newModel(t, nn.Dense{Units: 2}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithPreparation(p))
	figures := must.M1(m.Evaluate(t.Context(), table))
	all, drawings := written(t, report.Run{Model: m, Test: table})
	require.Contains(t, strings.Join(all, "\n"), fmt.Sprintf("accuracy\n%.6g", figures["accuracy"]))
	require.Positive(t, drawings)
	mapped := must.M1(table.MapBatches(func(b data.Batch) (data.Batch, error) { return b, nil }))
	again, _ := written(t, report.Run{Model: m, Test: mapped})
	require.Equal(t, all, again)
	all, _ = written(t, report.Run{Model: m, Test: must.M1(table.Map(data.Drop("kind")))})
	require.Contains(t, strings.Join(all, "\n"), "the test set has no labels")
}

// The metrics of 200 thresholds see no order among probabilities below 0.005, as in Keras; the curves do, and the page
// says which number is which.
func TestSave_ofARareClass(t *testing.T) {
	x, y := make([]float32, 100), make([]int32, 100)
	for i := range x {
		x[i], y[i] = -9+float32(i)/30, int32(i/90)
	}
	m := newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }), flaxlike.WithLoss("binary_crossentropy"),
		flaxlike.WithMetrics("auc", "average_precision"))
	texts, _ := written(t, report.Run{Model: m, Test: must.M1(data.New(data.X(x, 100, 1), data.Y(y, 100)))})
	all := strings.Join(texts, "\n")
	require.Contains(t, all, "auc\n0.5 (of 200 thresholds; a curve has all)\naverage_precision\n0.1 (of 200 thresholds")
	require.Contains(t, all, "AUC 1.000")
}

// identity's outputs are its inputs.
var identity = nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x })

func sixDigits(v float64) string { return fmt.Sprintf("%.6g", v) }

// Before thresholds and calibration the classes are those that Evaluate counts, after them those of Predict.
func TestClasses_beforeAndAfterThresholds(t *testing.T) {
	x, y := []float32{-2, -1, -0.5, 0.5, 1, 2, -3, 0.2}, []float32{0, 1, 0, 1, 1, 1, 0, 0}
	m := newModel(t, identity, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy", "precision", "recall", "f1"))
	test := must.M1(data.New(data.X(x, 8, 1), data.Y(y, 8, 1)))
	_, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.NoError(t, m.SetCalibration("", decision.Calibration{Scale: 2, Shift: -1.5}))
	require.NoError(t, m.SetThresholds("", 0.05))
	texts, _ := written(t, report.Run{Model: m, Test: test, Classes: []string{"no", "yes"}})
	figures, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.Equal(t, []string{"0.7500", "0.7500", "0.7500", "4"}, cells(texts, "Metrics per class", 0, "yes"))
	for i, name := range []string{"precision", "recall", "f1"} {
		require.Equal(t, fmt.Sprintf("%.4f", figures[name]), cells(texts, "Metrics per class", 0, "yes")[i], name)
	}
	require.Equal(t, []string{"0.6000", "0.7500", "0.6667", "4"}, cells(texts, "Metrics per class", 1, "yes"), "of the logits above -0.72")
	require.Equal(t, []string{"0.75 (6 of 8)", "right classes", "0.625 (5 of 8)", "Data"}, cells(texts, "Figures of the test set", 0, "right classes, threshold 0.5"))
	require.Contains(t, texts, "With the model's calibration and threshold 0.05, as Predict answers.")
	all := strings.Join(texts, "\n")
	require.Contains(t, all, "6 of 8 examples are right (75.0%)")
	require.Contains(t, all, "5 of 8 examples are right (62.5%)")
}

// Several classes of an example have figures of each, curves of each, and the averages of scikit-learn.
func TestClasses_multiLabel(t *testing.T) {
	x := []float32{1, -1, 2, -1, 1, -2, 1, 1, 1, -1, -1, -1, 2, -1, -3}
	y := []float32{1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0}
	m := newModel(t, identity, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("binary_accuracy"))
	test := must.M1(data.New(data.X(x, 5, 3), data.Y(y, 5, 3)))
	_, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.NoError(t, m.SetThresholds("", 0.5, 0.2, 0.9))
	texts, _ := written(t, report.Run{Model: m, Test: test, Classes: []string{"a", "b", "c"}})
	for name, want := range map[string][]string{"a": {"0.6667", "1.0000", "0.8000", "2"}, "b": {"1.0000", "0.6667", "0.8000", "3"}, "c": {"1.0000", "0.6667", "0.8000", "3"},
		"micro average": {"0.8571", "0.7500", "0.8000", "8"}, "macro average": {"0.8889", "0.7778", "0.8000", "8"}, "weighted average": {"0.9167", "0.7500", "0.8000", "8"}} {
		require.Equal(t, want, cells(texts, "Metrics per class", 0, name), name)
	}
	require.Equal(t, []string{"0.6000", "1.0000", "0.7500", "3"}, cells(texts, "Metrics per class", 1, "b"))
	require.Equal(t, []string{"2", "0", "1", "2"}, cells(texts, "Confusion of each class", 0, "b"))
	require.Equal(t, []string{"3", "2", "0", "0"}, cells(texts, "Confusion of each class", 1, "b"))
	figures, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.Contains(t, cells(texts, "Figures of the test set", 0, "right classes, threshold 0.5")[0], sixDigits(figures["binary_accuracy"]))
	require.Contains(t, strings.Join(texts, "\n"), "b (AUC 0.833)")
	require.Contains(t, texts, "a, c")
}

// Places of sequences that do not count are in no figure: those whose label the loss ignores, and those that an
// embedding masks.
func TestClasses_ofSequences(t *testing.T) {
	x := []int32{1, 2, 3, 0, 2, 2, 1, 3, 3, 1, 0, 0}
	y := []int32{0, 1, 2, 9, 2, -1, 0, 2, 9, 0, 1, 1}
	embed := nn.Sequential{nn.Embedding{Vocabulary: 4, Width: 3, Padding: new(0)}, nn.Dense{Units: 3}}
	m := newModel(t, embed, flaxlike.WithLoss(flaxlike.Loss{Name: "masked_sparse_categorical_crossentropy", Ignore: []int{9}}), flaxlike.WithMetrics("accuracy"))
	test := must.M1(data.New(data.X(x, 3, 4), data.Y(y, 3, 4)))
	texts, _ := written(t, report.Run{Model: m, Test: test})
	figures, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%.6g (%.0f of 7)", figures["accuracy"], figures["accuracy"]*7), cells(texts, "Figures of the test set", 0, "right classes")[0])
	require.Equal(t, "7", cells(texts, "Metrics per class", 0, "macro average")[3])

	// Code may mask places without a word of it: Evaluate's accuracy finds that.
	masked := flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Embedding{Vocabulary: 4, Width: 3}.Apply(scope.In("e"), input("x"))
		h = nn.Masked(h, graph.NotEqual(input("x"), graph.Scalar(h.Graph(), dtypes.Int32, 0)))
		return map[string]*graph.Node{"y": nn.Dense{Units: 3}.Apply(scope.In("d"), h)}
	})
	for i, label := range y {
		y[i] = label & 1
	}
	y[3], y[10], y[11] = 2, 2, 2
	loss := flaxlike.WithLoss(flaxlike.Loss{Name: "sparse_categorical_crossentropy", Output: "y"})
	texts, _ = written(t, report.Run{Model: newModel(t, masked, loss, flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "y"})), Test: test})
	require.Contains(t, strings.Join(texts, "\n"), "the network masks places")
	texts, _ = written(t, report.Run{Model: newModel(t, masked, loss), Test: test})
	require.Contains(t, strings.Join(texts, "\n"), "give the model the metric accuracy")
}
