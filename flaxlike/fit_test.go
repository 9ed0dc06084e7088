package flaxlike_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/train"
)

func quiet(f flaxlike.Fit) flaxlike.Fit {
	f.Output = io.Discard
	return f
}

func TestDigits(t *testing.T) {
	training, test := digits(t)
	var sum float64
	for seed := range int64(3) {
		m := newModel(t, mlp(), flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(seed))
		_, err := m.Fit(t.Context(), training, quiet(flaxlike.Fit{Epochs: 20}))
		require.NoError(t, err)
		found, err := m.Evaluate(t.Context(), test)
		require.NoError(t, err)
		sum += found["accuracy"]
		predicted, err := m.Predict(t.Context(), test)
		require.NoError(t, err)
		require.Equal(t, []int{360, 10}, output(t, predicted).Dims)
		require.InDelta(t, found["accuracy"], hits(output(t, predicted), test), 1e-6, "Predict keeps the order, and drops the padding")
	}
	t.Logf("mean accuracy of seeds 0-2: %.4f", sum/3)
	require.GreaterOrEqual(t, sum/3, 0.91)
}

func hits(logits data.Array, set *data.Set) float64 {
	labels, flat, n := set.Fields()[1].Array.Flat.([]int32), logits.Flat.([]float32), 0
	for i, label := range labels {
		best := 0
		for c := range 10 {
			if flat[i*10+c] > flat[i*10+best] {
				best = c
			}
		}
		if int32(best) == label {
			n++
		}
	}
	return float64(n) / float64(len(labels))
}

// The history has a row for each epoch, with the means over its examples and what validation found.
func TestHistory(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.05))
	set := sorted(t, 100)
	more, err := set.Slice(0, 10)
	require.NoError(t, err)
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3, ValidationSplit: 0.2, Validations: map[string]*data.Set{"few": more}}))
	require.NoError(t, err)
	require.Equal(t, 3, h.Len())
	for _, name := range []string{"loss", "accuracy", "val_loss", "val_accuracy", "few_loss", "few_accuracy"} {
		require.Len(t, series(t, h, name), 3, name)
	}
	require.Equal(t, []float64{3, 6, 9}, series(t, h, "elapsed.steps"), "80 examples are 2 batches of 32 and one of 16")
	require.Equal(t, []float64{80, 160, 240}, series(t, h, "elapsed.samples"))
	losses := series(t, h, "loss")
	require.Less(t, losses[2], losses[0])
	// 20 and 10 examples fill no batch of 32: the padding counts nowhere.
	rest, err := set.Slice(80, 100)
	require.NoError(t, err)
	_, err = m.ResetStep(t.Context())
	require.NoError(t, err)
	_, logs, err := m.TestStep(t.Context(), first(t, rest, 20))
	require.NoError(t, err)
	require.InDelta(t, float(t, logs, "avg_loss"), series(t, h, "val_loss")[2], 1e-6)
	require.Equal(t, []float64{1, 2, 3}, series(t, h, "epoch"))
}

// A level down: train.Of makes of the methods what Fit does.
func TestTrainOf(t *testing.T) {
	options := []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(7)}
	set := sorted(t, 96)
	above := newModel(t, nn.Dense{Units: 3}, options...)
	h, err := above.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 4, Validation: set}))
	require.NoError(t, err)

	below := newModel(t, nn.Dense{Units: 3}, options...)
	training := train.Of[*flaxlike.Model]()
	training.Epoch = loop.Steps(3)
	test := train.TestOf[*flaxlike.Model](set.Batches(32))
	test.Name = "val"
	training.Tests = []loop.Evaluation[*flaxlike.Model, data.Batch]{test}
	result, err := training.Run(t.Context(), below, set.Batches(32, data.Shuffle(7)), loop.Until(loop.Epochs(4)), loop.Keep(loop.Every(loop.Steps(3))))
	require.NoError(t, err)
	for under, name := range map[string]string{"avg_loss": "loss", "accuracy": "accuracy", "loss_val": "val_loss", "accuracy_val": "val_accuracy"} {
		require.InDeltaSlice(t, series(t, result.History, under), series(t, h, name), 1e-5, name)
	}
}

func TestInterrupt(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	stop := loop.Watch(loop.At(loop.Steps(6)), func(context.Context, loop.Report) error { cancel(why); return nil })
	h, err := m.Fit(ctx, line(t, 128), quiet(flaxlike.Fit{Epochs: 100, Callbacks: []loop.Option{stop}}))
	require.ErrorIs(t, err, why)
	require.Equal(t, 4.0, series(t, h, "elapsed.steps")[0], "the epoch that was complete")
	_, err = m.Evaluate(t.Context(), line(t, 128))
	require.NoError(t, err, "the state is good")
}

func TestFitBatches(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	h, err := m.FitBatches(t.Context(), line(t, 64).Batches(16), quiet(flaxlike.Fit{Epochs: 2, StepsPerEpoch: 3}))
	require.NoError(t, err)
	require.Equal(t, []float64{3, 6}, series(t, h, "elapsed.steps"))
}

// An epoch that took no time by the clock, as one of few steps made together, has no rate.
func TestOutput(t *testing.T) {
	for lines, want := range map[bool]string{
		true:  `^epoch 1/2 - [^\n]* - loss: \d\.\d{4} - (learning_rate: \S+ - )?val_loss: \d\.\d{4}( - \S+ examples/s)?\nepoch 2/2 - [^\n]* - val_loss: \d\.\d{4}( - \S+ examples/s)?\n$`,
		false: `^epoch 1/2 - [^\n]* - loss: \d\.\d{4} - (learning_rate: \S+ - )?val_loss: \d\.\d{4}( - \S+ examples/s)?\nepoch 2/2 - [^\n]* - val_loss: \d\.\d{4}( - \S+ examples/s)?\n$`,
	} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			var out bytes.Buffer
			m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
			set := line(t, 128)
			_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 2, Validation: set, Lines: lines, Output: &out})
			require.NoError(t, err)
			text := out.String()
			require.Regexp(t, want, text)
		})
	}
}

// A set on the device is trained on to the same bits, and labels that are out of range are found there too.
func TestFit_onDevice(t *testing.T) {
	set, _ := digits(t)
	var losses [2][]float64
	for i, resident := range []bool{false, true} {
		m := newModel(t, mlp(), flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"))
		history, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, OnDevice: resident, ValidationSplit: 0.1}))
		require.NoError(t, err)
		losses[i] = series(t, history, "loss")
	}
	require.Equal(t, losses[0], losses[1])
	wrong := make([]int32, 64)
	wrong[40] = 12
	bad, err := data.New(data.X(make([]float32, 64*64), 64, 8, 8, 1), data.Y(wrong, 64))
	require.NoError(t, err)
	m := newModel(t, mlp(), flaxlike.WithLoss(sparse))
	_, err = m.Fit(t.Context(), bad, quiet(flaxlike.Fit{Epochs: 1, OnDevice: true}))
	require.ErrorIs(t, err, flaxlike.ErrValue)
	require.ErrorContains(t, err, "label 12 of example 40 in the set")
	resident := data.OnDevice(bad)
	for range 2 { // that it was told once does not make it good
		_, err = m.FitBatches(t.Context(), resident.Batches(8), quiet(flaxlike.Fit{Epochs: 1, StepsPerEpoch: 8}))
		require.ErrorIs(t, err, flaxlike.ErrValue)
	}
}

// The number of a wrong callback counts the caller's, not those of Fit.
func TestFit_numberOfAWrongCallback(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	_, err := m.Fit(t.Context(), line(t, 8), quiet(flaxlike.Fit{Callbacks: []loop.Option{callbacks.TimeLimit(time.Hour), callbacks.StopEarly("loss", nil)}}))
	require.EqualError(t, err, "flaxlike: fit: callback 2 (on each loss: stop early): no patience given; use Steps, Samples, Time or Evaluations")
}
