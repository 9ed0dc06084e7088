package report_test

import (
	"math"
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

// A forecast is drawn after its history if the input is a series: windows in the order of time, or with a time axis.
// Columns of a table are none.
func TestForecasts(t *testing.T) {
	const n, length, horizon = 20, 12, 3
	var x, y []float32
	for i := range n {
		for k := range length + horizon {
			v := float32(math.Sin(float64(i + k)))
			if k < length {
				x = append(x, v)
			} else {
				y = append(y, v)
			}
		}
	}
	last := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Reshape(x, x.Shape().Dim(0), -1)
		return graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, horizon))
	})
	m := newModel(t, last, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mse"))
	page := func(m *flaxlike.Model, set *data.Set) string {
		texts, _ := written(t, report.Run{Model: m, Test: set})
		return strings.Join(texts, "\n")
	}
	series := must.M1(data.New(data.X(x, n, length), data.Y(y, n, horizon)))
	text := page(m, series)
	require.Contains(t, text, "Forecasts\n6 of 20 examples, evenly spaced.\nexample 0\nhistory\ntrue\npredicted")
	require.Contains(t, text, "step 3: residuals")
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i * 7 % n
	}
	text = page(m, must.M1(series.Gather(rows)))
	require.Contains(t, text, "are not windows in the order of time")
	require.Contains(t, text, "output 3: residuals")
	three := newModel(t, last, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mse"))
	text = page(three, must.M1(must.M1(data.New(data.X(x, n, length/2, 2), data.Y(y, n, horizon))).Gather(rows)))
	require.Contains(t, text, "The history is the input's feature 0 of 2.")
}
