package report_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// The worst examples have the highest loss that Evaluate has for one alone, of all examples, with their texts. One
// without a weight has no loss.
func TestWorst(t *testing.T) {
	const n = 200
	x, y, w, texts := make([]float32, n), make([]float32, n), make([]float32, n), make([]string, n)
	for i := range n {
		x[i], w[i], texts[i] = float32(i), 1, "an example without an error"
		y[i] = x[i] + float32(i%2)*0.01
	}
	y[150], y[42], y[7] = 160, 40, 1000
	w[42], w[7] = 100, 0
	texts[42] = "<b>" + strings.Repeat("long ", 200)
	raw := must.M1(data.New(data.X(x, n, 1), data.Y(y, n, 1), data.Named("w", w, n), data.Named("text", texts, n)))
	test := must.M1(raw.MapBatches(func(b data.Batch) (data.Batch, error) { return data.Drop("text")(b) }))
	m := newModel(t, identity, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w"))
	page, _ := written(t, report.Run{Model: m, Test: test})
	at := func(example int) float64 {
		return must.M1(m.Evaluate(t.Context(), must.M1(test.Gather([]int{example}))))["loss"]
	}
	require.Equal(t, 400.0, at(42))
	all := strings.Join(page, "\n")
	require.Contains(t, all, "Worst examples\nNot a random choice: the 12 examples with the highest loss of the 64 of 200 with the greatest squared errors")
	require.Contains(t, all, "loss\ntext\n42\n40\n42\n400\n<b>long long")
	require.Contains(t, all, "… (1003 characters)\n150\n160\n150\n100\nan example without an error\n")
	require.NotContains(t, all, "\n7\n1000\n")
}

// The candidates of labels that the loss scales are those of its scale: a small label may be the worst.
func TestWorst_ofScaledLabels(t *testing.T) {
	const n = 200
	x, y := make([]float32, n), make([]float32, n)
	for i := range n {
		x[i], y[i] = 1, float32(1000+3000*(i%2))
	}
	y[150] = 100
	table := must.M1(data.New(data.Named("a", x, n), data.Named("y", y, n)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}, tables.Labels{Columns: []string{"y"}, Numbers: true, Scale: tables.Standard, Log: true}))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	must.M1(m.Predict(t.Context(), table))
	must.M(m.SetValue("/model/kernel", tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)))
	texts, _ := written(t, report.Run{Model: m, Test: table})
	_, worst, _ := strings.Cut(strings.Join(texts, "\n"), "Worst examples\n")
	require.Contains(t, worst[:min(len(worst), 600)], "\n150\n100\n")
}
