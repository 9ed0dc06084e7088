package flaxlike_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

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

// The rows of a batch are divided over devices, with padding; its examples count. So the numbers are those of one
// device, for any sizes, unless the user asked for examples to be dropped.
//
//lazo:norace
func TestR06_rowsAreDividedAndExamplesCounted(t *testing.T) {
	whole := sorted(t, 9)
	model := func(strategy strategies.Strategy, batch int) *flaxlike.Model {
		m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithStrategy(strategy), flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(batch))
		require.NoError(t, m.Init(t.Context(), first(t, whole, 6)))
		return m
	}
	one := model(jit(t), 9)
	runtimes := map[int]*xla.Runtime{}
	for _, devices := range []int{2, 3} {
		r := plugintest.Devices(t, devices)
		runtimes[devices] = r
	}
	compared, refused := 0, 0
	for devices, r := range runtimes {
		for _, pad := range []bool{false, true} {
			on, err := strategies.DataParallel(r, strategies.Parallel{Pad: pad})
			require.NoError(t, err)
			for _, batch := range []int{2, 5, 6} {
				m := model(on, batch)
				for _, n := range []int{1, 5, 9} {
					at := fmt.Sprintf("%d examples by %d on %d devices, pad %t", n, batch, devices, pad)
					set, err := whole.Slice(0, n)
					require.NoError(t, err)

					got, err := m.Evaluate(t.Context(), set)
					if batch%devices != 0 && !pad {
						require.ErrorIs(t, err, strategies.ErrLeftover, at)
						refused++
					} else {
						require.NoError(t, err, at)
						want, err := one.Evaluate(t.Context(), set)
						require.NoError(t, err)
						for _, name := range []string{"loss", "accuracy"} {
							require.InDelta(t, want[name], got[name], 1e-6, "%s: %s", at, name)
						}
						compared++
					}

					preds, err := m.Predict(t.Context(), set)
					if size := min(batch, n); size%devices != 0 && !pad {
						require.Error(t, err, at) // no prediction may be missing
						refused++
						continue
					}
					require.NoError(t, err, at)
					want, err := one.Predict(t.Context(), set)
					require.NoError(t, err)
					require.Equal(t, output(t, want).Dims, output(t, preds).Dims, at)
					require.InDeltaSlice(t, output(t, want).Flat, output(t, preds).Flat, 1e-6, at)
					compared++
				}
			}
		}
	}
	require.Equal(t, 72, compared+refused)
	require.Greater(t, compared, 45)
	t.Logf("%d figures as on one device, %d refused", compared, refused)
}

func TestClassWeights(t *testing.T) {
	batch := first(t, sorted(t, 30), 30)
	loss := func(options ...flaxlike.Option) (train, test float64) {
		m := newModel(t, nn.Dense{Units: 3}, append(options, flaxlike.WithLoss(sparse))...)
		_, logs, err := m.TestStep(t.Context(), batch)
		require.NoError(t, err)
		test = float(t, logs, "loss")
		_, logs, err = m.TrainStep(t.Context(), batch)
		require.NoError(t, err)
		return float(t, logs, "loss"), test
	}
	plain, test := loss()
	require.InDelta(t, plain, test, 1e-6)
	twice, testTwice := loss(flaxlike.WithClassWeights(map[int]float64{0: 2, 1: 2, 2: 2}))
	require.InDelta(t, 2*plain, twice, 1e-5)
	require.InDelta(t, test, testTwice, 1e-6, "in training alone")
	var sum float64
	for class := range 3 {
		only := map[int]float64{0: 0, 1: 0, 2: 0}
		only[class] = 1
		v, _ := loss(flaxlike.WithClassWeights(only))
		sum += v
	}
	require.InDelta(t, plain, sum, 1e-5)
	two := newModel(t, flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"kind": nn.Dense{Units: 3}.Apply(scope.In("kind"), input("x")), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), input("x"))}
	}), flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "kind", Label: "y"}, flaxlike.Loss{Name: "mse", Output: "size", Label: "y"}),
		flaxlike.WithClassWeights(map[int]float64{0: 2}))
	_, err := two.Fit(t.Context(), sorted(t, 30), quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `before the first step: WithClassWeights: the model has the outputs ["kind" "size"]`)
}
