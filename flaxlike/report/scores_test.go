package report_test

import (
	"fmt"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
)

// The figures of classes are those of scikit-learn's classification_report, and Evaluate's.
func TestScores_asScikitLearn(t *testing.T) {
	x := []float32{2, 0, 1, 0, 3, 1, 1, 2, 0, 0, 0, 5, 4, 1, 0, 0, 2, 1, 1, 0, 3, 2, 1, 0}
	y := []int32{0, 1, 0, 2, 0, 2, 1, 0}
	m := newModel(t, identity, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy", "precision", "recall", "f1"))
	test := must.M1(data.New(data.X(x, 8, 3), data.Y(y, 8)))
	texts, _ := written(t, report.Run{Model: m, Test: test, Classes: []string{"a", "b", "c"}})
	for name, want := range map[string][]string{"a": {"1.0000", "0.7500", "0.8571", "4"}, "b": {"0.3333", "0.5000", "0.4000", "2"}, "c": {"0.5000", "0.5000", "0.5000", "2"},
		"micro average (accuracy)": {"0.6250", "0.6250", "0.6250", "8"}, "macro average": {"0.6111", "0.5833", "0.5857", "8"}, "weighted average": {"0.7083", "0.6250", "0.6536", "8"}} {
		require.Equal(t, want, cells(texts, "Metrics per class", 0, name), name)
	}
	figures, err := m.Evaluate(t.Context(), test)
	require.NoError(t, err)
	for i, name := range []string{"precision", "recall", "f1"} {
		require.Equal(t, fmt.Sprintf("%.4f", figures[name]), cells(texts, "Metrics per class", 0, "macro average")[i], name)
	}
	require.Equal(t, fmt.Sprintf("%.4f", figures["accuracy"]), cells(texts, "Metrics per class", 0, "micro average (accuracy)")[0])
	require.Contains(t, texts, "0.625 (5 of 8)")
	require.Equal(t, sixDigits(figures["accuracy"]), cells(texts, "Figures of the test set", 0, "accuracy")[0])
	require.Equal(t, figures["loss"], m.Describe().Card.Evaluated["loss"], "the worst examples' losses are not the card's")
}
