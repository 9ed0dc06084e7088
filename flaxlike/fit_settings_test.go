package flaxlike_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

func TestInitialEpoch(t *testing.T) {
	set := line(t, 120) // the last batch of an epoch is of 24
	options := []flaxlike.Option{flaxlike.WithLoss("mse")}
	whole := newModel(t, nn.Dense{Units: 1}, options...)
	_, err := whole.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 5}))
	require.NoError(t, err)
	parts := newModel(t, nn.Dense{Units: 1}, options...)
	_, err = parts.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
	require.NoError(t, err)
	h, err := parts.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 5, InitialEpoch: 2}))
	require.NoError(t, err)
	require.Equal(t, []float64{12, 16, 20}, series(t, h, "elapsed.steps"))
	require.Equal(t, []float64{360, 480, 600}, series(t, h, "elapsed.samples"))
	require.Equal(t, values(t, whole), values(t, parts), "the order of the data goes on where it was")
}

func TestFitSettings(t *testing.T) {
	set := line(t, 128)
	for _, row := range []struct {
		name  string
		fit   flaxlike.Fit
		steps []float64
		tests int // rows with val_loss
	}{
		{"nothing", flaxlike.Fit{}, []float64{4}, 0},
		{"steps per epoch", flaxlike.Fit{Epochs: 3, StepsPerEpoch: 2}, []float64{2, 4, 6}, 0},
		{"batch size", flaxlike.Fit{BatchSize: 64, Epochs: 2}, []float64{2, 4}, 0},
		{"a batch larger than the set", flaxlike.Fit{BatchSize: 200, Epochs: 2}, []float64{1, 2}, 0},
		{"any period", flaxlike.Fit{Until: loop.Samples(288)}, []float64{4, 8}, 0},
		{"every second epoch", flaxlike.Fit{Epochs: 4, Validation: set, ValidationEvery: 2}, []float64{4, 8, 12, 16}, 2},
		{"after epochs by their numbers", flaxlike.Fit{Epochs: 4, Validation: set, ValidationAt: []int{1, 4}, ValidationBatchSize: 50}, []float64{4, 8, 12, 16}, 2},
		{"learning rate", flaxlike.Fit{}, []float64{4}, 0},
		{"fast dev run", flaxlike.Fit{Epochs: 50, Validation: set, FastDevRun: true}, []float64{1}, 1},
		{"overfit", flaxlike.Fit{Epochs: 2, OverfitBatches: 1, Validation: set}, []float64{1, 2}, 2},
		{"sanity", flaxlike.Fit{Epochs: 1, Validation: set, SanityEvaluation: true}, []float64{4}, 1},
		{"a callback stops", flaxlike.Fit{Epochs: 9, Callbacks: []loop.Option{loop.Watch(loop.At(loop.Steps(8)), func(context.Context, loop.Report) error { return loop.ErrStop })}}, []float64{4, 8}, 0},
		{"callbacks", flaxlike.Fit{Epochs: 3, Validation: set, Callbacks: []loop.Option{callbacks.KeepBest("val_loss"),
			callbacks.StopEarly("val_loss", callbacks.Evaluations(2)), callbacks.ReduceOnPlateau("val_loss", 0.5, callbacks.Evaluations(2)), callbacks.NonFinite()}}, []float64{4, 8, 12}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
			h, err := m.Fit(t.Context(), set, quiet(row.fit))
			require.NoError(t, err)
			require.Equal(t, row.steps, series(t, h, "elapsed.steps"))
			if row.tests > 0 {
				require.Len(t, series(t, h, "val_loss"), row.tests)
			}
		})
	}
}

// A sanity evaluation, and a model that was built before, change nothing of what is learned.
func TestSanityChangesNothing(t *testing.T) {
	set := sorted(t, 96)
	learned := func(sanity bool) map[string]string {
		m := newModel(t, nn.Sequential{nn.Dense{Units: 8}, nn.Dropout{Rate: 0.5}, nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse))
		if sanity {
			require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		}
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, Validation: set, SanityEvaluation: sanity}))
		require.NoError(t, err)
		return values(t, m)
	}
	require.Equal(t, learned(false), learned(true))
}

// The labels that a function makes are looked at, and not those that the set has.
func TestFit_augmentChangesLabels(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss("categorical_crossentropy"))
	fit := flaxlike.Fit{Augment: []func(data.Batch) (data.Batch, error){images.MixUp(1, 0.4, 3)}}
	_, err := m.Fit(t.Context(), sorted(t, 64), quiet(fit))
	require.NoError(t, err)
	broken := sorted(t, 64)
	mapped, err := broken.MapBatches(func(b data.Batch) (data.Batch, error) {
		b.Fields = []data.Field{b.Fields[0], data.Y([]int32{7}, 1)}
		for range b.Size - 1 {
			b.Fields[1].Array.Flat = append(b.Fields[1].Array.Flat.([]int32), 0)
		}
		b.Fields[1].Array.Dims = []int{b.Size}
		return b, nil
	})
	require.NoError(t, err)
	m = newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse))
	_, err = m.Fit(t.Context(), mapped, quiet(flaxlike.Fit{}))
	require.ErrorIs(t, err, flaxlike.ErrValue)
	_, err = m.Fit(t.Context(), broken, quiet(flaxlike.Fit{Validation: mapped}))
	require.ErrorIs(t, err, flaxlike.ErrValue, "before anything is trained")
	_, err = m.Evaluate(t.Context(), mapped)
	require.ErrorIs(t, err, flaxlike.ErrValue)
	_, err = m.Fit(t.Context(), broken, quiet(flaxlike.Fit{Augment: []func(data.Batch) (data.Batch, error){nil}}))
	require.EqualError(t, err, "flaxlike: fit: function 1 of 1 in Augment is nil")
	_, err = m.Fit(t.Context(), broken, quiet(flaxlike.Fit{OnDevice: true, Augment: fit.Augment}))
	require.ErrorContains(t, err, "both OnDevice and Augment are given")
}

// Settings that a run does not reach are reported in the words of Fit. The set has 2 batches.
func TestFit_endBeforeAnEpoch(t *testing.T) {
	set := line(t, 64)
	for _, row := range []struct {
		name string
		fit  flaxlike.Fit
		err  string
	}{
		{"until below an epoch", flaxlike.Fit{Until: loop.Steps(1), Validation: set},
			"flaxlike: fit: Until is 1 step, and an epoch has 2 steps (StepsPerEpoch): no epoch would end, and only at the end of an epoch metrics are reset, the history gets a row and Validation is evaluated\n  set StepsPerEpoch to 1 or less"},
		{"validation below the epochs", flaxlike.Fit{Epochs: 2, Validation: set, ValidationEvery: 3},
			"flaxlike: fit: ValidationEvery is 3 epochs, and Epochs is 2: there would be no test\n  set ValidationEvery to 2 or less"},
		{"validation below until", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationEvery: 3},
			"flaxlike: fit: ValidationEvery is 3 epochs, and Until is 5 steps, and an epoch has 2 steps (StepsPerEpoch): there would be no test\n  set ValidationEvery to 2 or less"},
		{"validation at", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationAt: []int{1, 3}},
			"flaxlike: fit: ValidationAt has epoch 3, and Until is 5 steps, and an epoch has 2 steps (StepsPerEpoch): expected 1 to 2"},
		{"enough", flaxlike.Fit{Until: loop.Steps(5), Validation: set, ValidationEvery: 2}, ""},
		{"of samples nobody knows", flaxlike.Fit{Until: loop.Samples(200), Validation: set}, ""},
		{"a dry run", flaxlike.Fit{Until: loop.Steps(1), Validation: set, FastDevRun: true}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).Fit(t.Context(), set, quiet(row.fit))
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, row.err)
		})
	}
}

// InitialEpoch begins there, whatever the number of steps is.
func TestS06_initialEpoch(t *testing.T) {
	h, err := unlearning(t).Fit(t.Context(), rising(t, 112), quiet(flaxlike.Fit{InitialEpoch: 3, Epochs: 6, BatchSize: 32}))
	require.NoError(t, err)
	require.Equal(t, []float64{4, 5, 6}, series(t, h, "epoch"))
	require.Equal(t, []float64{16, 20, 24}, series(t, h, "elapsed.steps"))
	require.Equal(t, []float64{448, 560, 672}, series(t, h, "elapsed.samples"))

	folder := openFolder(t, t.TempDir(), checkpoint.Options{})
	_, err = unlearning(t).Fit(t.Context(), rising(t, 64), quiet(flaxlike.Fit{Epochs: 2, BatchSize: 32, Callbacks: []loop.Option{resume(folder)}}))
	require.NoError(t, err)
	_, err = unlearning(t).Fit(t.Context(), rising(t, 64), quiet(flaxlike.Fit{InitialEpoch: 3, Epochs: 6, BatchSize: 8, Callbacks: []loop.Option{resume(folder)}}))
	require.ErrorContains(t, err, "before InitialEpoch 3")
	h, err = unlearning(t).Fit(t.Context(), rising(t, 64), quiet(flaxlike.Fit{InitialEpoch: 2, Epochs: 4, BatchSize: 8, Callbacks: []loop.Option{resume(folder)}}))
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3, 4}, series(t, h, "epoch"))
	require.Equal(t, []float64{2, 4, 12, 20}, series(t, h, "elapsed.steps"))
}

// The run has one beginning and one end, of which the fields of Fit say where they are.
func TestFit_refusesAnotherEndAmongItsCallbacks(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	for want, option := range map[string]loop.Option{
		"flaxlike: fit: option 2 of 2 in Callbacks also ends the run, by loop.Until(3 steps), in addition to Epochs, 3: a run has one end: remove the option and set Fit.Until, without Epochs": loop.Until(loop.Steps(3)),
		"flaxlike: fit: option 2 of 2 in Callbacks sets where the run begins, by loop.Continue(5 steps): use InitialEpoch or checkpoint.Resume instead":                                         loop.Continue(loop.Elapsed{Steps: 5}, nil),
	} {
		_, err := m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{Epochs: 3, Callbacks: []loop.Option{nil, option}}))
		require.EqualError(t, err, want)
	}
	require.Empty(t, m.Describe().Inputs, "before the first step")
}
