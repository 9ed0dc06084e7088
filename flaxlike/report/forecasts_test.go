package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
	"github.com/lazo-ml/lazo/data/tables"
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

// The history of windows that the model prepares is in the units of the answers.
func TestForecasts_ofATable(t *testing.T) {
	days, sales := make([]int32, 60), make([]float32, 60)
	for i := range days {
		days[i], sales[i] = int32(i), 200+float32(i%7)
	}
	table := must.M1(data.New(data.Named("day", days, 60), data.Named("other", sales, 60), data.Named("sales", sales, 60)))
	set := must.M1(series.Windows{Length: 14, Horizon: 3, Columns: []string{"other", "sales"}, Targets: []string{"sales"}, Time: "day"}.Of(table))
	p := must.M1(tables.Fit(set, tables.Numbers{Columns: []string{"other", "sales"}, Scale: tables.Standard},
		tables.Labels{Columns: []string{"next sales"}, Numbers: true, Scale: tables.Standard}))
	m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 3}}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	texts, _ := written(t, report.Run{Model: m, Test: set})
	all := strings.Join(texts, "\n")
	require.Contains(t, all, `The history is the column "sales".`)
	require.Contains(t, all, "\n-10\n-5\n0\n200\n202\n204\n206\n", "the axes")

	// Numbers of a file that was read as texts.
	cells := make([]string, 60)
	for i, v := range sales {
		cells[i] = fmt.Sprint(v)
	}
	table = must.M1(data.New(data.Named("day", days, 60), data.Named("other", cells, 60), data.Named("sales", cells, 60)))
	set = must.M1(series.Windows{Length: 14, Horizon: 3, Columns: []string{"other", "sales"}, Targets: []string{"sales"}, Time: "day"}.Of(table))
	again, _ := written(t, report.Run{Model: m, Test: set})
	require.Contains(t, strings.Join(again, "\n"), "\n-10\n-5\n0\n200\n202\n204\n206\n", "the axes")
}
