package report_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

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
