package flaxlike_test

import (
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

const masked = "masked_sparse_categorical_crossentropy"

// identity is a network whose outputs are the inputs.
func identity(_ *model.Scope, x *graph.Node) *graph.Node { return x }

// The losses and metrics by name, against what they are by their formulas.
//
//lazo:norace
func TestNames(t *testing.T) {
	ln := math.Log
	softmax := func(z ...float64) []float64 {
		var sum float64
		for _, v := range z {
			sum += math.Exp(v)
		}
		p := make([]float64, len(z))
		for i, v := range z {
			p[i] = math.Exp(v) / sum
		}
		return p
	}
	p, q := softmax(1, 2, 3), softmax(3, 1, 1)
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	threes := data.X([]float32{1, 2, 3, 3, 1, 1}, 2, 3)
	ones := data.X([]float32{2, -1, 0.5, -3}, 4, 1)
	classes := data.Y([]int32{2, 1}, 2)
	probabilities := data.Y([]float32{0, 0.5, 0.5, 1, 0, 0}, 2, 3)
	bits := data.Y([]int32{1, 1, 0, 0}, 4)
	numbers := data.Y([]float32{2, 0, 0.5, 1}, 4)
	for _, row := range []struct {
		kind, name string
		x, y       data.Field
		want       float64
	}{
		{"loss", "sparse_categorical_crossentropy", threes, classes, -(ln(p[2]) + ln(q[1])) / 2},
		{"loss", masked, data.X([]float32{1, 2, 3, 3, 1, 1}, 1, 2, 3), data.Y([]int32{2, -100}, 1, 2), -ln(p[2])},
		{"loss", masked, data.X([]float32{1, 2, 3, 3, 1, 1}, 2, 1, 3), data.Y([]int32{-100, 1}, 2, 1), -ln(q[1])},
		{"loss", masked, data.X([]float32{1, 2, 3, 3, 1, 1}, 1, 2, 3), data.Y([]int32{-1, -1}, 1, 2), 0},
		{"loss", "categorical_crossentropy", threes, probabilities, -(0.5*ln(p[1]) + 0.5*ln(p[2]) + ln(q[0])) / 2},
		{"loss", "kl_divergence", threes, probabilities, (ln(0.5) - 0.5*ln(p[1]) - 0.5*ln(p[2]) - ln(q[0])) / 2},
		{"loss", "binary_crossentropy", ones, bits, -(ln(sigmoid(2)) + ln(sigmoid(-1)) + ln(1-sigmoid(0.5)) + ln(1-sigmoid(-3))) / 4},
		{"loss", "mse", ones, numbers, (0 + 1 + 0 + 16) / 4.0},
		{"loss", "mean_squared_error", ones, numbers, 17 / 4.0},
		{"loss", "mae", ones, numbers, 5 / 4.0},
		{"loss", "mean_absolute_error", ones, numbers, 5 / 4.0},
		{"loss", "huber", ones, numbers, (0.5 + 3.5) / 4},
		{"loss", "hinge", ones, data.Y([]float32{1, 1, -1, -1}, 4), (0 + 2 + 1.5 + 0) / 4},
		{"metric", "accuracy", threes, classes, 0.5},
		{"metric", "accuracy", ones, bits, 0.5},
		{"metric", "acc", threes, data.Y([]int32{2, 1}, 2, 1), 0.5},
		{"metric", "sparse_categorical_accuracy", threes, classes, 0.5},
		{"metric", "categorical_accuracy", threes, data.Y([]float32{0, 0, 1, 1, 0, 0}, 2, 3), 1},
		{"metric", "binary_accuracy", ones, bits, 0.5},
		{"metric", "top_5_accuracy", threes, classes, 1},
		{"metric", "sparse_top_k_categorical_accuracy", threes, classes, 1},
		{"metric", "precision", ones, bits, 0.5},
		{"metric", "recall", ones, bits, 0.5},
		{"metric", "f1", ones, bits, 0.5},
		{"metric", "f1_score", ones, bits, 0.5},
		{"metric", "recall", threes, classes, 1 / 3.0},
		{"metric", "recall", data.X([]float32{1, 0, 0, 1, 0, 1, 1, 0}, 4, 2), data.Y([]int32{0, 1, 1, 1}, 4), (1 + 2/3.0) / 2}, // macro, of two logits too
		{"metric", "auc", ones, bits, 0.75},
		{"metric", "mean_iou", ones, bits, 1 / 3.0},
		{"metric", "mean_iou", threes, classes, 1 / 3.0},
		{"metric", "pearson", ones, numbers, pearson([]float64{2, -1, 0.5, -3}, []float64{2, 0, 0.5, 1})},
		{"metric", "concordance", ones, data.Y([]float32{2, -1, 0.5, -3}, 4, 1), 1},
		{"metric", "mse", ones, numbers, 17 / 4.0},
		{"metric", "mean_squared_error", ones, numbers, 17 / 4.0},
		{"metric", "rmse", ones, numbers, math.Sqrt(17 / 4.0)},
		{"metric", "root_mean_squared_error", ones, numbers, math.Sqrt(17 / 4.0)},
		{"metric", "mae", ones, numbers, 5 / 4.0},
		{"metric", "mean_absolute_error", ones, numbers, 5 / 4.0},
		{"metric", "r2", ones, numbers, 1 - 17/(4*variance(2, 0, 0.5, 1))},
		{"metric", "r2_score", ones, numbers, 1 - 17/(4*variance(2, 0, 0.5, 1))},
		{"metric", "cosine_similarity", threes, probabilities, (2.5/math.Sqrt(14*0.5) + 3/math.Sqrt(11)) / 2},
		{"metric", "crossentropy", threes, classes, -(ln(p[2]) + ln(q[1])) / 2},
		{"metric", "perplexity", threes, classes, math.Exp(-(ln(p[2]) + ln(q[1])) / 2)},
	} {
		t.Run(row.kind+" "+row.name, func(t *testing.T) {
			option, entry := flaxlike.WithLoss(row.name), "loss"
			if row.kind == "metric" {
				option, entry = flaxlike.WithMetrics(row.name), row.name
			}
			options := []flaxlike.Option{option, flaxlike.WithBatchSize(3)} // padded
			if reflect.DeepEqual(row.y, bits) && row.kind == "metric" {
				options = append(options, flaxlike.WithLoss("binary_crossentropy")) // the numbers are logits
			}
			m := newModel(t, nn.Func(identity), options...)
			set, err := data.New(row.x, row.y)
			require.NoError(t, err)
			found, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			require.InDelta(t, row.want, found[entry], 1e-5)
		})
	}
}

func variance(values ...float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	n := float64(len(values))
	return squares/n - sum/n*sum/n
}

func pearson(x, y []float64) float64 {
	var sumX, sumY, products float64
	for i := range x {
		sumX, sumY, products = sumX+x[i], sumY+y[i], products+x[i]*y[i]
	}
	n := float64(len(x))
	return (products/n - sumX/n*sumY/n) / math.Sqrt(variance(x...)*variance(y...))
}

// Keras 3.15's values with label_smoothing=0.2, from_logits=True; sparse labels as their one-hot ones.
func TestLoss_smoothing(t *testing.T) {
	want := map[string]float64{"categorical_crossentropy": 2.417001962661743, "categorical_focal_crossentropy": 0.5074862837791443,
		"binary_crossentropy": 0.9438942670822144, "binary_focal_crossentropy": 0.46280908584594727, "sparse_categorical_crossentropy": 2.4420018196105957}
	labels := map[string]data.Field{"binary_crossentropy": {}, "binary_focal_crossentropy": {}}
	fields := []data.Field{data.X([]float32{1.5, -0.5, 0.25, 2, -1, 0.75, 3, 0.5}, 2, 4)}
	var losses []flaxlike.Loss
	for name := range want {
		losses = append(losses, flaxlike.Loss{Name: name, Output: name, Smoothing: 0.2})
		_, binary := labels[name]
		switch {
		case name == sparse:
			fields = append(fields, data.Named(name, []int32{2, 3}, 2))
		case binary:
			fields = append(fields, data.Named(name, []float32{1, 0, 1, 0, 0, 1, 0, 1}, 2, 4))
		default:
			fields = append(fields, data.Named(name, []float32{0, 0, 1, 0, 0, 0.25, 0, 0.75}, 2, 4))
		}
	}
	set, err := data.New(fields...)
	require.NoError(t, err)
	m := newModel(t, flaxlike.Functional(func(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
		out := map[string]*graph.Node{}
		for name := range want {
			out[name] = input("x")
		}
		scope.VariableWithValue("unused", float32(0))
		return out
	}), flaxlike.WithLoss(losses...), flaxlike.WithBatchSize(2))
	got, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	for name, v := range want {
		require.InDelta(t, v, got[name+"_loss"], 1e-6*v, name)
	}
	for want, l := range map[string]flaxlike.Loss{
		`loss "mse": Smoothing is not supported, expected a loss with one of the Names ["binary_crossentropy"`: {Name: "mse", Smoothing: 0.1},
		`loss "mse": Delta is 2, and this loss does not have it`:                                               {Name: "mse", Delta: 2},
		`loss "huber": Gamma is 2, and this loss does not have it`:                                             {Name: "huber", Gamma: 2},
		`loss "huber": Delta is -1, expected a positive, finite number, or 0 for the default`:                  {Name: "huber", Delta: -1},
		`loss "binary_focal_crossentropy": Alpha is 2, expected a share up to 1`:                               {Name: "binary_focal_crossentropy", Alpha: 2},
		`Ignore is [3], and only the loss "masked_sparse_categorical_crossentropy" leaves labels out`:          {Name: sparse, Ignore: []int{3}},
		`it has a Func, and Delta, Gamma or Alpha`:                                                             {Name: "huber", Delta: 2, Func: func(_, o *graph.Node) *graph.Node { return o }},
		`loss "categorical_crossentropy": the smoothing is 1, expected a share`:                                {Name: "categorical_crossentropy", Smoothing: 1},
		`Smoothing is not supported`:                                                                           {Name: "binary_crossentropy", Smoothing: 0.1, Func: func(_, o *graph.Node) *graph.Node { return o }},
	} {
		_, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss(l))
		require.ErrorContains(t, err, want)
	}
}

// The numbers of a loss are in the file of the model and in its description.
func TestLoss_numbersAreSaved(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{-4, 1, 6}, 3, 1), data.Named("y", []float32{0, 1, 0}, 3)))
	m := newModel(t, nn.Dense{Units: 1, NoBias: true, Kernel: nn.Initial("ones")}, flaxlike.WithLoss(flaxlike.Loss{Name: "huber", Delta: 2.5}, flaxlike.Loss{Name: "binary_focal_crossentropy", Gamma: 3, Alpha: 0.75}))
	before := must.M1(m.Evaluate(t.Context(), set))
	require.InDelta(t, (2.5*4-3.125+0+2.5*6-3.125)/3, before["huber"], 1e-5)
	require.Contains(t, m.Describe().String(), "binary_focal_crossentropy, gamma 3, alpha 0.75")
	path := filepath.Join(t.TempDir(), "m.safetensors")
	must.M(m.Save(path))
	again := must.M1(flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t))))
	defer again.Close()
	require.Equal(t, before, must.M1(again.Evaluate(t.Context(), set)))
}

// Ignored labels, outside of the classes or one of them, count in neither the loss nor its metrics, also of a saved
// model. Another label outside of the classes is an error.
func TestLoss_ignoredLabels(t *testing.T) {
	x := data.X([]float32{2, 0, 1, 0, 3, 0, 0, 0, 5, 1, 1, 0}, 4, 3)
	set := must.M1(data.New(x, data.Y([]int32{0, 255, 2, 1}, 4)))
	m := newModel(t, nn.Dense{Units: 3, NoBias: true, Kernel: func(g *graph.Graph, s shapes.Shape) *graph.Node {
		return graph.DiagonalWithValue(graph.Const(g, float32(1)), 3)
	}},
		flaxlike.WithLoss(flaxlike.Loss{Name: masked, Ignore: []int{255, 1}}), flaxlike.WithMetrics("accuracy", "mean_iou"))
	entropy := func(z ...float64) float64 { return math.Log(math.Exp(z[0])+math.Exp(z[1])+math.Exp(z[2])) - z[0] }
	before := must.M1(m.Evaluate(t.Context(), set))
	require.InDelta(t, (entropy(2, 0, 1)+entropy(5, 0, 0))/2, before["loss"], 1e-6)
	require.Equal(t, 1.0, before["accuracy"])
	require.Equal(t, 1.0, before["mean_iou"])
	require.Contains(t, m.Describe().String(), "ignore [255 1]")
	path := filepath.Join(t.TempDir(), "m.safetensors")
	must.M(m.Save(path))
	again := must.M1(flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t))))
	defer again.Close()
	require.Equal(t, before, must.M1(again.Evaluate(t.Context(), set)))
	_, err := m.Evaluate(t.Context(), must.M1(data.New(x, data.Y([]int32{0, 255, 254, 1}, 4))))
	require.ErrorContains(t, err, `label 254 of example 2`)
}
