package flaxlike_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
)

// The labels of a hinge are ranked by "auc" too.
func TestMetrics_aucOfSigns(t *testing.T) {
	set, err := data.New(data.X([]float32{2, 1, -1, -2}, 4, 1), data.Y([]float32{1, -1, 1, -1}, 4, 1))
	require.NoError(t, err)
	found, err := newModel(t, nn.Func(identity), flaxlike.WithLoss("hinge"), flaxlike.WithMetrics("auc")).Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 0.75, found["auc"], 1e-6)
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

// A weighted metric is divided by the sum of the weights, in each of its forms, and in a padded batch too.
func TestMetrics_weighted(t *testing.T) {
	set, err := data.New(data.X([]float32{0, 0, 0, 0}, 4, 1), data.Y([]float32{1, 2, 3, 4}, 4, 1), data.Named("w", []float32{3, 1, 0, 0}, 4))
	require.NoError(t, err)
	off := func(y, o *graph.Node) *graph.Node { return graph.Abs(graph.Sub(y, o)) }
	for _, size := range []int{4, 3} { // 3: padded
		m := newModel(t, nn.Func(identity), flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w"), flaxlike.WithBatchSize(size), flaxlike.WithMetrics(
			flaxlike.Metric{Name: "ones", Func: func(y, _ *graph.Node) *graph.Node { return graph.OnesLike(graph.Reshape(y, -1)) }, Weighted: true},
			flaxlike.Metric{Name: "func", Func: off, Weighted: true},
			flaxlike.Metric{Name: "plain", Func: off},
			flaxlike.Metric{Name: "value", Metric: metrics.MeanAbsoluteError(), Weighted: true},
			flaxlike.Metric{Name: "mae", Weighted: true}))
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		for name, want := range map[string]float64{"ones": 1, "func": 1.25, "plain": 2.5, "value": 1.25, "mae": 1.25} {
			require.InDelta(t, want, found[name], 1e-6, name)
		}
	}
}

// Class weights count in weighted metrics in training, with sample weights, and not in an evaluation: Keras's figures.
func TestMetrics_weightedByClass(t *testing.T) {
	x := data.X([]float32{1, 0, 0, 1, 1, 0, 1, 0}, 4, 2) // its class is 0, 1, 0, 0
	set, err := data.New(x, data.Y([]int32{0, 0, 1, 0}, 4), data.Named("w", []float32{1, 1, 1, 2}, 4))
	require.NoError(t, err)
	hit := func(y, o *graph.Node) *graph.Node {
		return graph.ConvertDType(graph.Equal(y, graph.ArgMax(o, -1, y.DType())), o.DType())
	}
	idle := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		return graph.Add(x, graph.MulScalar(nn.Dense{Units: 2}.Apply(scope, x), 0))
	})
	for _, row := range []struct {
		options []flaxlike.Option
		want    float64 // of 10 for each of class 0, 1 for class 1
	}{
		{nil, 20.0 / 31},
		{[]flaxlike.Option{flaxlike.WithSampleWeights("w")}, 30.0 / 41},
	} {
		m := newModel(t, idle, append(row.options, flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(map[int]float64{0: 10}), flaxlike.WithMetrics(
			flaxlike.Metric{Name: "accuracy", Weighted: true}, flaxlike.Metric{Name: "func", Func: hit, Weighted: true}, flaxlike.Metric{Name: "acc"}))...)
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{BatchSize: 4, Validation: set}))
		require.NoError(t, err)
		require.InDelta(t, row.want, series(t, h, "accuracy")[0], 1e-6)
		require.InDelta(t, row.want, series(t, h, "func")[0], 1e-6)
		require.InDelta(t, 0.5, series(t, h, "acc")[0], 1e-6)
		tested := 0.5
		if row.options != nil {
			tested = 3.0 / 5
		}
		require.InDelta(t, tested, series(t, h, "val_accuracy")[0], 1e-6)
	}
}

// A metric by name takes an output as probabilities if a sigmoid or softmax made them or a loss takes them, as numbers
// near 0 and 1 with a loss of numbers, else as logits. All have Keras's figures.
//
//lazo:norace
func TestKerasMetrics_ofProbabilitiesNumbersAndLogits(t *testing.T) {
	var f struct {
		Cuts map[string]struct {
			Labels, Output []float32
			Width          int
			Values         map[string]float64
		}
	}
	raw, err := os.ReadFile("testdata/keras.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &f))
	own := flaxlike.WithLoss(flaxlike.Loss{Name: "own", Func: func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(labels, output)) }})
	through := func(name string) nn.Layer {
		return nn.Sequential{nn.Func(identity), nn.Activation(name)}
	}
	odds := func(p float32) float32 { return float32(math.Log(float64(p) / (1 - float64(p)))) }
	log := func(p float32) float32 { return float32(math.Log(float64(p))) }
	same := func(p float32) float32 { return p }
	for _, row := range []struct {
		kind, name string
		network    nn.Layer
		x          func(p float32) float32
		losses     flaxlike.Option
	}{
		{"sigmoid", "dice", through("sigmoid"), odds, flaxlike.WithLoss("dice")},
		{"sigmoid", "mse", through("sigmoid"), odds, flaxlike.WithLoss("mse")},
		{"sigmoid", "mae", through("sigmoid"), odds, flaxlike.WithLoss("mae")},
		{"sigmoid", "own", through("sigmoid"), odds, own},
		{"sigmoid", "none", through("sigmoid"), odds, flaxlike.WithLoss[string]()},
		{"sigmoid", "tversky of clipped numbers", nn.Func(clipped), same, flaxlike.WithLoss("tversky")},
		{"sigmoid", "mse of probabilities that nobody sees", nn.Func(identity), same, flaxlike.WithLoss("mse")},
		{"sigmoid", "logits", nn.Func(identity), odds, flaxlike.WithLoss("binary_crossentropy")},
		{"sigmoid", "logits, and a loss of numbers", nn.Func(identity), odds, flaxlike.WithLoss("mae", "binary_focal_crossentropy")},
		{"numbers", "huber", nn.Func(identity), same, flaxlike.WithLoss("huber")},
		{"several", "dice", through("sigmoid"), odds, flaxlike.WithLoss("dice")},
		{"several", "mse", through("sigmoid"), odds, flaxlike.WithLoss("mse")},
		{"several", "logits", nn.Func(identity), odds, flaxlike.WithLoss("binary_crossentropy")},
		{"softmax", "mse", through("softmax"), log, flaxlike.WithLoss("mse")},
		{"softmax", "logits", nn.Func(identity), log, flaxlike.WithLoss("categorical_crossentropy")},
	} {
		t.Run(row.kind+" "+row.name, func(t *testing.T) {
			of := f.Cuts[row.kind]
			x := make([]float32, len(of.Output))
			for i, p := range of.Output {
				x[i] = row.x(p)
			}
			n := len(x) / of.Width
			set := must.M1(data.New(data.X(x, n, of.Width), data.Y(of.Labels, n, of.Width)))
			require.NotEmpty(t, of.Values)
			m := newModel(t, row.network, row.losses, flaxlike.WithMetrics(slices.Sorted(maps.Keys(of.Values))...), flaxlike.WithBatchSize(16)) // padded
			found, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			for name, want := range of.Values {
				require.InDelta(t, want, found[name], 2e-6, name)
			}
		})
	}
}

// Without a loss the meaning of an output's numbers is unknown: a metric that needs it is an error.
func TestMetric_withoutALossAssumesNoLogits(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{-3, -1, 0.2, 5}, 4, 1), data.Y([]float32{0, 0, 1, 1}, 4, 1)))
	for _, metric := range []string{"binary_accuracy", "precision", "auc"} {
		m := newModel(t, nn.Func(identity), flaxlike.WithMetrics(metric))
		_, err := m.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, "no loss by name has the output")
	}
}

// Metrics with the masked loss ignore the same labels, and the padding of a batch.
func TestMetrics_leaveOutTheMaskedLabels(t *testing.T) {
	x := data.X([]float32{1, 2, 3, 3, 1, 1, 9, 0, 0, 0, 5, 0, 1, 1, 4, 7, 7, 7}, 3, 2, 3)
	y := data.Y([]int32{2, 1, -100, -1, 2, -1}, 3, 2) // those that count: 2 (hit), 1 (not), 2 (hit)
	entropy := func(own int, z ...float64) float64 {
		var sum float64
		for _, v := range z {
			sum += math.Exp(v)
		}
		return math.Log(sum) - z[own]
	}
	mean := (entropy(2, 1, 2, 3) + entropy(1, 3, 1, 1) + entropy(2, 1, 1, 4)) / 3
	set, err := data.New(x, y)
	require.NoError(t, err)
	for _, size := range []int{3, 2} { // 2: padded
		names := []string{"accuracy", "sparse_categorical_accuracy", "top_5_accuracy", "perplexity", "crossentropy", "recall", "precision", "f1", "mean_iou"}
		m := newModel(t, nn.Func(identity), flaxlike.WithLoss(masked), flaxlike.WithMetrics(names...), flaxlike.WithBatchSize(size))
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		require.InDelta(t, 2/3.0, found["accuracy"], 1e-6)
		require.InDelta(t, 2/3.0, found["sparse_categorical_accuracy"], 1e-6)
		require.InDelta(t, mean, found["crossentropy"], 1e-5)
		require.InDelta(t, math.Exp(mean), found["perplexity"], 1e-4)
		for _, name := range names {
			require.False(t, math.IsNaN(found[name]), name)
		}
	}
}
