package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
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
