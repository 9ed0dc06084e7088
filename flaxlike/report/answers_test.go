package report_test

import (
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// The columns of a table are those of the worst examples and of the importances. Examples that a mask leaves out are
// nowhere.
func TestAnswers_ofATable(t *testing.T) {
	const n = 40
	mass, island, species := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		mass[i], island[i], species[i] = []string{"3.5", "4", "", "5.25"}[i%4], []string{"Dream", "Biscoe"}[i/20], []string{"a", "b", "c"}[i%3]
	}
	table := must.M1(data.New(data.Named("mass", mass, n), data.Named("island", island, n), data.Named("species", species, n)))
	prepared := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMedian, Scale: tables.Standard}, tables.Categories{Columns: []string{"island"}},
		tables.Labels{Columns: []string{"species"}}))
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithPreparation(prepared))
	figures := must.M1(m.Evaluate(t.Context(), table))
	texts, _ := written(t, report.Run{Model: m, Test: table})
	all := strings.Join(texts, "\n")
	require.Equal(t, sixDigits(figures["accuracy"]), cells(texts, "Figures of the test set", 0, "accuracy")[0])
	require.Contains(t, all, "example\nlabel\nanswer\nloss\nmass\nisland\n", "the label is no input")
	require.Contains(t, all, "of 5 permutations (seed 1) of 40 examples.")
	require.Contains(t, all, "column mass\nas number, field x, fill 4, ")
	require.NotContains(t, all, "island=Dream")

	counts := make([]bool, n)
	for i := range 30 {
		counts[i] = true
	}
	masked := must.M1(data.New(append(table.Fields(), data.Named(data.Mask, counts, n))...))
	texts, _ = written(t, report.Run{Model: m, Test: masked})
	figures = must.M1(m.Evaluate(t.Context(), masked))
	require.Equal(t, "30", cells(texts, "Metrics per class", 0, "macro average")[3])
	require.Equal(t, sixDigits(figures["loss"]), cells(texts, "Figures of the test set", 0, "loss")[0])
}
