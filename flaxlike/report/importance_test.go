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

// The importances are those of scikit-learn 1.9's permutation_importance with these permutations.
func TestImportance_asScikitLearn(t *testing.T) {
	const n = 12
	var x, y []float32
	classes := make([]int32, n)
	for i := range n {
		row := []float32{float32(i * 5 % 12), float32(i * 7 % 5), float32(i * 3 % 7)}
		x, y = append(x, row...), append(y, 2*row[0]-row[1]+float32(i%3)-1)
	}
	classes[4], classes[8] = 1, 2
	linear := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node {
		column := func(k int) *graph.Node { return graph.Slice(x, graph.AxisRange(), graph.AxisElem(k)) }
		return graph.Sub(graph.MulScalar(column(0), 2), column(1))
	})
	m := newModel(t, linear, flaxlike.WithLoss("mse"))
	texts, _ := written(t, report.Run{Model: m, Test: must.M1(data.New(data.X(x, n, 3), data.Y(y, n, 1)))})
	all := strings.Join(texts, "\n")
	require.Contains(t, all, "How far the R² (0.9795) falls when a feature is permuted among examples: mean ± standard deviation of 5 permutations (seed 1) of 12 examples.\n"+
		"x[0]\n2.7141 ± 0.7231\nx[1]\n0.1139 ± 0.0284\nx[2]\n0.0000 ± 0.0000")
	m = newModel(t, identity, flaxlike.WithLoss("sparse_categorical_crossentropy"))
	texts, _ = written(t, report.Run{Model: m, Test: must.M1(data.New(data.X(x, n, 3), data.Y(classes, n)))})
	require.Contains(t, strings.Join(texts, "\n"), "How far the accuracy (0.8333) falls")
	require.Contains(t, strings.Join(texts, "\n"), "x[0]\n0.1833 ± 0.0816\nx[2]\n0.1500 ± 0.0816\nx[1]\n0.1167 ± 0.0408")
}

// Many features are permuted in fewer examples.
func TestImportance_isBounded(t *testing.T) {
	const n, k = 300, 120
	set := must.M1(data.New(data.X(make([]float32, n*k), n, k), data.Y(make([]float32, n*k), n, k)))
	_, y := set.Field("y")
	require.NoError(t, y)
	values := must.M1(set.Field("y")).Flat.([]float32)
	for i := range values {
		values[i] = float32(i % 7)
	}
	texts, _ := written(t, report.Run{Model: newModel(t, identity, flaxlike.WithLoss("mse")), Test: set})
	require.Contains(t, strings.Join(texts, "\n"), "of 100 of the 300 examples, evenly spaced. The first 100 of 120 features.")
}

// Few positives hardly change the accuracy: the score is the model's ranking metric.
func TestImportance_ofAFewPositives(t *testing.T) {
	const n = 100
	var x []float32
	y := make([]int32, n)
	for i := range n {
		x = append(x, float32(i), float32(i*37%n))
		if i >= n-2 {
			y[i] = 1
		}
	}
	first := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node {
		return graph.MulScalar(graph.AddScalar(graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, 1)), -100), 0.1)
	})
	set := must.M1(data.New(data.X(x, n, 2), data.Y(y, n, 1)))
	for metric, name := range map[string]string{"auc": "area under the ROC curve", "average_precision": "average precision"} {
		texts, _ := written(t, report.Run{Model: newModel(t, first, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy", metric)), Test: set})
		all := strings.Join(texts, "\n")
		require.Contains(t, all, "How far the "+name+" (1) falls when a feature")
		require.Contains(t, all, "x[1]\n0.0000 ± 0.0000")
		require.NotContains(t, all, "x[0]\n0.0000")
	}
}
