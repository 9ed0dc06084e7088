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

// A network that weights the left half with 0.1 has the probability 1/(1+e^-1.6) for a line of 16 ones there. A cell of
// four pixels with two of them falls from 2 to 4/16, and the probability by 0.0259.
func TestSave_saliency(t *testing.T) {
	const n, side = 4, 16
	x := make([]float32, n*side*side)
	for i := range x {
		if i%side == 3 {
			x[i] = 1
		}
	}
	test := must.M1(data.New(data.X(x, n, side, side, 1), data.Y(make([]int32, n), n)))
	m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 2, NoBias: true}}, flaxlike.WithLoss("sparse_categorical_crossentropy"))
	must.M1(m.Predict(t.Context(), test))
	kernel := make([]float32, side*side*2)
	for i := range side * side {
		if i%side < side/2 {
			kernel[2*i] = 0.1
		}
	}
	must.M(m.SetValue("/model/1/kernel", tensors.FromFlatDataAndDimensions(kernel, side*side, 2)))
	for _, set := range []*data.Set{test, must.M1(test.MapBatches(func(b data.Batch) (data.Batch, error) { return b, nil }))} {
		texts, _ := written(t, report.Run{Model: m, Test: set})
		_, page, found := strings.Cut(strings.Join(texts, "\n"), "Saliency\nHow far the probability of the answer falls")
		require.True(t, found)
		require.Equal(t, 4, strings.Count(page, "by at most 0.026"), page[:min(len(page), 600)])
		require.Contains(t, page, "83.2%")
	}
}

// Without a word, the number of a linear model of counts falls by that word's weight.
func TestSave_words(t *testing.T) {
	table := must.M1(data.New(data.Named("text", []string{"a cheap gpu  driver", "gpu gpu more", "old"}, 3), data.Named("y", []float32{1, 4, 0}, 3)))
	p := must.M1(tables.Fit(table, tables.Terms{Column: "text"}, tables.Labels{Columns: []string{"y"}, Numbers: true}))
	m := newModel(t, nn.Dense{Units: 1, NoBias: true}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	must.M1(m.Predict(t.Context(), table))
	must.M(m.SetValue("/model/kernel", tensors.FromFlatDataAndDimensions([]float32{-0.5, 0, 2, 0, 0}, 5, 1))) // cheap, driver, gpu, more, old
	texts, _ := written(t, report.Run{Model: m, Test: table})
	_, page, _ := strings.Cut(strings.Join(texts, "\n"), "Words of text\n")
	require.Contains(t, page, "the 8 greatest changes.\nexample\nanswer\nwords\n0\n1.5\ngpu +2, cheap -0.5, a +0, driver +0\n1\n4\ngpu +2, gpu +2, more +0\n2\n0\nold +0\n")
}
