package flaxlike_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// What compares classes refuses an output of one, of which its figure would be constant.
func TestOneClassIsRefused(t *testing.T) {
	floats, err := data.New(data.X(make([]float32, 4), 4, 1), data.Y([]float32{0, 1, 0, 1}, 4, 1))
	require.NoError(t, err)
	zeros, err := data.New(data.X(make([]float32, 4), 4, 1), data.Y(make([]int32, 4), 4))
	require.NoError(t, err)
	refused := func(set *data.Set, what string, option flaxlike.Option) {
		t.Helper()
		m := newModel(t, nn.Func(identity), option)
		_, err := m.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, "has one class, whose probability is always 1")
	}
	for _, name := range []string{"categorical_crossentropy", "kl_divergence", "categorical_focal_crossentropy"} {
		refused(floats, name, flaxlike.WithLoss(name))
	}
	refused(zeros, sparse, flaxlike.WithLoss(sparse))
	refused(zeros, masked, flaxlike.WithLoss(masked))
	for _, name := range []string{"crossentropy", "perplexity", "categorical_accuracy", "sparse_categorical_accuracy", "top_5_accuracy", "categorical_crossentropy"} {
		refused(floats, name, flaxlike.WithMetrics(name))
	}
}

// Labels that a metric cannot compare are reported as those that a loss cannot take.
func TestLabelsThatAreNoClasses(t *testing.T) {
	const binary = "binary_crossentropy"
	for _, row := range []struct {
		name  string
		wrong string // "" for what is right
		y     []float32
		width int
		with  []flaxlike.Option
	}{
		{"a class of no two", "label 3 of example 3 in the set is out of range", []float32{0, 1, 0, 3}, 1, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("accuracy")}},
		{"a number", "label 0.7 of example 2 in the set is out of range", []float32{0, 1, 0.7, 1}, 1, []flaxlike.Option{flaxlike.WithLoss("mae"), flaxlike.WithMetrics("precision")}},
		{"numbers for classes", "label 7 of example 1 in the set is out of range", []float32{0, 1, 0, 7}, 2, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("accuracy")}},
		{"a loss as a metric", "label 3 of example 3 in the set is out of range", []float32{0, 1, 0, 3}, 1, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics(binary)}},
		{"0 and 1", "", []float32{0, 1, 0, 1}, 1, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("accuracy", "f1")}},
		{"signs beside a hinge", "", []float32{-1, 1, 1, -1}, 1, []flaxlike.Option{flaxlike.WithLoss("hinge"), flaxlike.WithMetrics("accuracy")}},
		{"smoothed beside a crossentropy", "", []float32{0.1, 0.9, 0.1, 0.9}, 1, []flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithMetrics("accuracy")}},
		{"smoothed with class weights", "label 0.1 of example 0 in the set is out of range: WithClassWeights", []float32{0.1, 0.9, 0.1, 0.9}, 1,
			[]flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithClassWeights(map[int]float64{1: 2})}},
		{"hard with class weights", "", []float32{0, 1, 0, 1}, 1, []flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithClassWeights(map[int]float64{1: 2})}},
		{"rows above 1", "sum of labels 1.5 of example 1 in the set is out of range: categorical_crossentropy", []float32{0, 1, 0.5, 1}, 2, []flaxlike.Option{flaxlike.WithLoss("categorical_crossentropy")}},
		{"several labels beside the likeliest class", "sum of labels 2 of example 1 in the set is out of range: the metric \"accuracy\"", []float32{0, 1, 1, 1}, 2,
			[]flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithMetrics("accuracy")}},
		{"several labels of a loss of numbers", "sum of labels 2 of example 1 in the set is out of range: the metric \"f1\"", []float32{0, 1, 1, 1}, 2,
			[]flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("f1")}},
		{"several labels", "", []float32{0, 1, 1, 1}, 2, []flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithMetrics("f1", "binary_accuracy", "auc")}},
		{"smoothed labels of a ranking", "label 0.1 of example 0 in the set is out of range: the metric \"auc\" ranks", []float32{0.1, 0.9, 0.1, 0.9}, 1,
			[]flaxlike.Option{flaxlike.WithLoss(binary), flaxlike.WithMetrics("auc")}},
		{"rows of 1 and of 0", "", []float32{0.25, 0.75, 0, 0}, 2, []flaxlike.Option{flaxlike.WithLoss("kl_divergence")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := len(row.y) / row.width
			set, err := data.New(data.X(make([]float32, n), n, 1), data.Y(row.y, n, row.width))
			require.NoError(t, err)
			_, err = newModel(t, nn.Dense{Units: row.width}, row.with...).Fit(t.Context(), set, quiet(flaxlike.Fit{BatchSize: n}))
			if row.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, flaxlike.ErrValue)
			require.ErrorContains(t, err, `field "y": `+row.wrong)
		})
	}
}

// The labels of a hinge are ranked by "auc" too.
func TestMetrics_aucOfSigns(t *testing.T) {
	set, err := data.New(data.X([]float32{2, 1, -1, -2}, 4, 1), data.Y([]float32{1, -1, 1, -1}, 4, 1))
	require.NoError(t, err)
	found, err := newModel(t, nn.Func(identity), flaxlike.WithLoss("hinge"), flaxlike.WithMetrics("auc")).Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 0.75, found["auc"], 1e-6)
}

// A row of zeros has loss 0, and class 0 in the accuracy, and counts in both means, as in Keras 3.15.
func TestLabels_rowOfZeros(t *testing.T) {
	set, err := data.New(data.X([]float32{9, 1, 0, 1, 8, 1, 0, 9, 0}, 3, 3), data.Y([]float32{0, 0, 0, 0, 1, 0, 1, 0, 0}, 3, 3))
	require.NoError(t, err)
	found, err := newModel(t, nn.Func(identity), flaxlike.WithLoss("categorical_crossentropy"), flaxlike.WithMetrics("accuracy")).Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 2./3, found["accuracy"], 1e-6)
	require.InDelta(t, 3.00068974, found["loss"], 1e-6)
}

// Examples of several labels are scored by the class, at logit 0: scikit-learn's figures, average="macro",
// zero_division=0.
func TestMetrics_severalLabels(t *testing.T) {
	says := []float32{1, -1, 1, -1, 1, -1, -1, 1, -1, 1, -1, -1, 1, -1, -1}
	is := []int32{1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0}
	want := map[string]float64{"precision": 0.55555556, "recall": 0.44444444, "f1": 0.48888889, "mean_iou": 0.38888889, "binary_accuracy": 11. / 15}
	floats := make([]float32, len(is))
	for i, v := range is {
		floats[i] = float32(v)
	}
	for _, y := range []data.Field{data.Y(is, 5, 3), data.Y(floats, 5, 3)} {
		set, err := data.New(data.X(says, 5, 3), y)
		require.NoError(t, err)
		m := newModel(t, nn.Func(identity), flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithBatchSize(3), flaxlike.WithMetrics("precision", "recall", "f1", "mean_iou", "binary_accuracy"))
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		for name, v := range want {
			require.InDelta(t, v, found[name], 1e-6, name)
		}
	}
}
