package flaxlike_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// R14: what follows an entry in Fit counts epochs, and sees their means, whether training logs it in each step or a
// test at their ends; a run that is resumed waits on where it was.
func TestR14_monitorsCountEpochs(t *testing.T) {
	set := line(t, 128)                                  // 4 steps an epoch
	fit := func(f flaxlike.Fit) (*loop.History, error) { // a rate too small to learn by: after the first epoch nothing is better by 1
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithLearningRate(1e-9))
		return m.Fit(t.Context(), set, quiet(f))
	}
	stop := func(entry string) loop.Option {
		return callbacks.StopEarly(entry, callbacks.Evaluations(3), callbacks.Monitor{MinDelta: 1, Mode: loop.Lowest})
	}
	for _, each := range []bool{false, true} {
		for _, entry := range []string{"loss", "losses.loss", "val_loss"} {
			h, err := fit(flaxlike.Fit{Epochs: 9, Validation: set, EachStep: each, Callbacks: []loop.Option{stop(entry)}})
			require.NoError(t, err)
			steps := series(t, h, "elapsed.steps")
			require.EqualValues(t, 16, steps[len(steps)-1], "%s: the first epoch is the best, three more are waited for", entry)
		}
	}
	var values []float64
	var at []int64
	h, err := fit(flaxlike.Fit{Epochs: 3, Callbacks: []loop.Option{callbacks.OnBest("loss", func(_ context.Context, r loop.Report) error {
		v, err := r.Logs.Float("loss")
		values, at = append(values, v), append(at, r.Elapsed.Steps)
		return err
	}, callbacks.Monitor{MinDelta: 1})}})
	require.NoError(t, err)
	require.Equal(t, []int64{4}, at)
	require.Equal(t, series(t, h, "loss")[:1], values)

	folder := openFolder(t, t.TempDir(), checkpoint.Options{})
	for _, until := range []int{2, 9} {
		h, err = fit(flaxlike.Fit{Epochs: until, EachStep: true, Callbacks: []loop.Option{stop("loss"), resume(folder)}})
		require.NoError(t, err)
	}
	steps := series(t, h, "elapsed.steps")
	require.EqualValues(t, 16, steps[len(steps)-1], "resumed behind the second epoch")
}

// R16: the rate that is logged is the one in force, schedules in it.
func TestR16_loggedRateIsInForce(t *testing.T) {
	schedule := optim.Cosine(1, 0, 8)
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(optim.New(0.01, optim.Adam{}, optim.ScaleBySchedule(schedule))))
	h, err := m.Fit(t.Context(), line(t, 128), quiet(flaxlike.Fit{Epochs: 2,
		Callbacks: []loop.Option{loop.Watch(loop.At(loop.Steps(4)), func(context.Context, loop.Report) error { return m.SetLearningRate(0.1) })}}))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.01 * schedule.At(3), 0.1 * schedule.At(7)}, series(t, h, "learning_rate"), 1e-8)
}

// R31: a model with a penalty, and one with a loss or figure of the whole batch, is evaluated on a set of any size.
func TestR31_anySizeOfASet(t *testing.T) {
	penalised := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		scope.SetParam(regularizer.ParamL2, 0.1)
		return nn.Dense{Units: 1}.Apply(scope, x)
	})
	active := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		y := nn.Dense{Units: 1}.Apply(scope, x)
		managed.AddLoss("activity", graph.ReduceAllMean(graph.Square(y)))
		return y
	})
	for name, network := range map[string]nn.Layer{"aux_loss": penalised, "activity": active} {
		m := newModel(t, network, flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(32))
		_, err := m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{ValidationSplit: 0.3}))
		require.NoError(t, err)
		found := must.M1(m.Evaluate(t.Context(), line(t, 75)))
		m.ResetStep(t.Context())
		_, logs, err := m.TestStep(t.Context(), first(t, line(t, 75), 75))
		require.NoError(t, err)
		for _, figure := range []string{"loss", name} {
			require.NotZero(t, found[figure])
			want, mean := float(t, logs, figure), float(t, logs, "avg_"+figure)
			if figure == "loss" { // with the penalty, which is trained on too
				want, mean = want+float(t, logs, name), mean+float(t, logs, "avg_"+name)
			}
			require.InEpsilon(t, want, found[figure], 1e-5, figure)
			require.InEpsilon(t, mean, found[figure], 1e-5, figure)
		}
	}
}

// R05: batches that are padded train a BatchNorm to the numbers of their examples alone.
func TestR05_paddedBatchesTrainBatchNorm(t *testing.T) {
	var losses [2][]float64
	var learned [2]map[string]string
	for i, size := range []int{6, 8} {
		m := newModel(t, nn.Sequential{nn.Dense{Units: 4}, nn.BatchNorm{}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"))
		batches := data.Map(line(t, 6).Batches(6).From(0), func(b data.Batch) (data.Batch, error) { return data.Pad(b, size) })
		h, err := m.FitBatches(t.Context(), loop.Data[data.Batch](batches), quiet(flaxlike.Fit{StepsPerEpoch: 1, Epochs: 3}))
		require.NoError(t, err)
		losses[i], learned[i] = series(t, h, "loss"), values(t, m)
		mean, err := m.Value("/model/1/batch_normalization/mean")
		require.NoError(t, err)
		t.Logf("%d rows: losses %.5f, mean %v", size, losses[i], mean.Value())
	}
	require.InDeltaSlice(t, losses[0], losses[1], 1e-5)
	require.Len(t, learned[1], len(learned[0]))
}

// R08: values that a loss, a layer or a weight cannot take are reported before the step, with the field, the example
// and the expected values.
func TestR08_numbersThatAreNotAllowed(t *testing.T) {
	x := data.X(make([]float32, 8), 8, 1)
	nan := float32(math.NaN())
	ids := data.X([]int32{0, 1, 2, 3, 4, 10, 6, -7}, 8, 1)
	embedding := nn.Sequential{nn.Embedding{Vocabulary: 10, Width: 4}, nn.Flatten{}, nn.Dense{Units: 1}}
	computed := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		return embedding.Apply(scope, graph.AddScalar(graph.MulScalar(x, 2), 1))
	})
	numbers := data.Y(make([]float32, 8), 8)
	for _, row := range []struct {
		name    string
		network nn.Layer
		options []flaxlike.Option
		fields  []data.Field
		want    string
		is      error
	}{
		{"binary labels 1 and 2", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("binary_crossentropy")}, []data.Field{x, data.Y([]int32{1, 1, 1, 2, 1, 1, 2, 1}, 8)},
			`field "y": label 2 of example 3 in the set is out of range: binary_crossentropy takes numbers from 0 to 1`, flaxlike.ErrValue},
		{"the same as floats", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("binary_crossentropy")}, []data.Field{x, data.Y([]float32{0, 1, 0.5, 1, 1, 1, 1, -1}, 8, 1)},
			`field "y": label -1 of example 7`, flaxlike.ErrValue},
		{"a class too many", nn.Dense{Units: 3}, []flaxlike.Option{flaxlike.WithLoss(sparse)}, []data.Field{x, data.Y([]uint8{0, 1, 2, 0, 1, 3, 0, 1}, 8)},
			`label 3 of example 5 in the set is outside of the classes 0…2`, flaxlike.ErrValue},
		{"hinge of 0 and 1", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("hinge")}, []data.Field{x, data.Y([]int32{1, 1, 0, 1, 1, 1, 0, 1}, 8)},
			`label 0 of example 2 in the set is out of range: hinge takes only -1 and 1`, flaxlike.ErrValue},
		{"NaN as a label", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("mse")}, []data.Field{x, data.Y([]float32{0, 0, 0, 0, nan, 0, 0, 0}, 8)},
			`label NaN of example 4 in the set is out of range: mse takes finite numbers`, flaxlike.ErrValue},
		{"a weight below 0", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w")}, []data.Field{x, numbers, data.Named("w", []float32{1, 1, 1, 1, 1, 1, -2, 1}, 8)},
			`field "w": weight -2 of example 6 in the set is out of range: sample weights are finite numbers from 0 on`, flaxlike.ErrValue},
		{"NaN as a weight", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w")}, []data.Field{x, numbers, data.Named("w", []float32{1, nan, 1, 1, 1, 1, 1, 1}, 8)},
			`weight NaN of example 1`, flaxlike.ErrValue},
		{"an integer that an embedding has not", embedding, []flaxlike.Option{flaxlike.WithLoss("mse")}, []data.Field{ids, numbers},
			`field "x": integer 10 of example 5 in the set is outside of the classes 0…9: the Embedding has 10`, flaxlike.ErrValue},
		{"the weight of no class", nn.Dense{Units: 3}, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(map[int]float64{1: 2, 7: 3})}, []data.Field{x, data.Y(make([]int32, 8), 8)},
			`WithClassWeights: there is no class 7: the output of the loss "loss" has the classes 0…2`, nil},
		{"class weights of numbers", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithClassWeights(map[int]float64{1: 2})}, []data.Field{x, numbers},
			`WithClassWeights: no loss has labels that are class numbers`, nil},
		{"what does not count may be anything", nn.Dense{Units: 3}, []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithSampleWeights("w")},
			[]data.Field{x, data.Y([]int32{0, 1, 2, -1, 1, 99, 0, 1}, 8), data.Named("w", []float32{1, 1, 1, 0, 1, 0, 1, 1}, 8)}, "", nil},
		{"what a mask leaves out too", nn.Dense{Units: 3}, []flaxlike.Option{flaxlike.WithLoss(sparse)},
			[]data.Field{x, data.Y([]int32{0, 1, 2, -1, 1, 99, 0, 1}, 8), data.Named(data.Mask, []bool{true, true, true, false, true, false, true, true}, 8)}, "", nil},
		{"class weights of two", nn.Dense{Units: 1}, []flaxlike.Option{flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithClassWeights(map[int]float64{1: 3})},
			[]data.Field{x, data.Y([]float32{1, 0, 1, 0, 1, 0, 1, 0}, 8)}, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := must.M1(data.New(row.fields...))
			m := newModel(t, row.network, append(row.options, flaxlike.WithBatchSize(8))...)
			h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{InOrder: true}))
			_, testErr := m.Evaluate(t.Context(), set)
			if row.want == "" {
				require.NoError(t, errors.Join(err, testErr))
				return
			}
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, testErr, row.want)
			require.Zero(t, h.Len(), "no step was made")
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
		})
	}
	_, err := newModel(t, embedding).Predict(t.Context(), must.M1(data.New(ids)))
	require.ErrorIs(t, err, flaxlike.ErrValue)
	out, err := newModel(t, computed).Predict(t.Context(), must.M1(data.New(data.X([]int32{0, 1, 5}, 3, 1))))
	require.NoError(t, err)
	preds := output(t, out).Flat.([]float32)
	require.Equal(t, []bool{false, false, true}, []bool{preds[0] != preds[0], preds[1] != preds[1], preds[2] != preds[2]}, "2·5+1 is outside: NaN")
}

// Fit logs the rate by which the parameters move, for each group with its own rate. Where it is unknown none is logged,
// and a callback that waits for it is an error before the first step.
func TestKerasLogRate_isTheRateInForce(t *testing.T) {
	half := optim.ScaleBySchedule(optim.Constant(0.5))
	var waiting []loop.Option
	fit := func(chain ...optim.Transformation) (*loop.History, error) {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(optim.New(0.01, chain...)))
		return m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{Callbacks: waiting}))
	}
	h, err := fit(half, optim.Adam{}) // which cancels it
	require.NoError(t, err)
	_, err = h.Last("learning_rate")
	require.ErrorIs(t, err, loop.ErrNoEntry)
	waiting = []loop.Option{loop.WatchEntry("learning_rate", func(context.Context, loop.Report) error { return nil })}
	h, err = fit(half, optim.Adam{})
	require.ErrorIs(t, err, loop.ErrNoEntry)
	require.ErrorContains(t, err, "the chain has no single learning rate: schedule scales the updates before adam")
	require.Zero(t, h.Len())
	waiting = nil
	h, err = fit(optim.Adam{}, half)
	require.NoError(t, err)
	require.InDelta(t, 0.005, series(t, h, "learning_rate")[0], 1e-9)
	h, err = fit(optim.Groups(optim.Group{Name: "weights", Match: optim.RankFrom(2), Chain: optim.Chain{optim.Adam{}, optim.Scale(0.1)}},
		optim.Group{Name: "rest", Chain: optim.Chain{optim.Adam{}}}))
	require.NoError(t, err)
	require.InDelta(t, 0.001, series(t, h, "learning_rate_weights")[0], 1e-9)
	require.InDelta(t, 0.01, series(t, h, "learning_rate_rest")[0], 1e-9)
}
