package flaxlike_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Fit over two processes is Fit on one: its history, where it stops early, and what Evaluate says, on both ranks.
func TestFit_ranks(t *testing.T) {
	if !ranks.Over(t, 2) {
		return
	}
	job, parallel := joined(t)
	history, found := fitEarly(t, parallel)
	alone, foundAlone := fitEarly(t, strategies.Jit(plugintest.CPU(t)))
	require.Equal(t, alone.Len(), history.Len())
	require.Greater(t, alone.Len(), 2, "epochs")
	require.Less(t, alone.Len(), 40, "it stopped early")
	names := alone.Names()
	require.Equal(t, names, history.Names())
	worst, same := 0.0, int64(0)
	for _, name := range []string{"loss", "mae", "val_loss", "val_mae"} {
		require.Contains(t, names, name)
		_, want, err := alone.Series(name)
		require.NoError(t, err)
		_, got, err := history.Series(name)
		require.NoError(t, err)
		require.Len(t, got, len(want), name)
		for i := range want {
			worst = max(worst, math.Abs(got[i]-want[i])/max(1, math.Abs(want[i])))
			same = same*31 + int64(math.Float64bits(got[i]))
		}
	}
	require.Len(t, found, len(foundAlone))
	for name, want := range foundAlone {
		worst = max(worst, math.Abs(found[name]-want)/max(1, math.Abs(want)))
		same += int64(math.Float64bits(found[name]))
	}
	require.Less(t, worst, 1e-5)
	equal, err := job.Same("the history", same)
	require.NoError(t, err)
	require.True(t, equal, "both ranks have one history")
	fmt.Fprintf(os.Stderr, "%d epochs, and an evaluation, at most %.1e from those of one process\n", history.Len(), worst)
	require.NoError(t, job.Close())
}

// joined is this process's job, and its part of training over all of them.
func joined(t *testing.T) (*dist.Job, strategies.Strategy) {
	t.Helper()
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	parallel, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{})
	require.NoError(t, err)
	return job, parallel
}

// A callback at the end of an epoch may test and predict with the model, where several processes train it. Without its
// context a run would be a second one of the job, and is refused.
func TestFit_ranksWithinAnEpochEnd(t *testing.T) {
	if !ranks.Over(t, 2) {
		return
	}
	job, parallel := joined(t)
	x, y := make([]float32, 32*4), make([]float32, 32)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	set, err := data.New(data.X(x, 32, 4), data.Y(y, 32, 1))
	require.NoError(t, err)
	model, err := flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithStrategy(parallel), flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(8))
	require.NoError(t, err)
	ends := 0
	_, err = model.Fit(t.Context(), set, flaxlike.Fit{Epochs: 2, Output: io.Discard, Callbacks: []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(ctx context.Context, _ loop.Report) error {
		ends++
		found, err := model.Evaluate(ctx, set)
		if err != nil {
			return err
		}
		if found["loss"] == 0 {
			return errors.New("no loss")
		}
		outputs, err := model.Predict(ctx, set)
		if err != nil {
			return err
		}
		require.Equal(t, []int{32, 1}, output(t, outputs).Dims)
		_, err = model.Evaluate(t.Context(), set)
		require.ErrorContains(t, err, "already makes another run on this job")
		return nil
	})}})
	require.NoError(t, err)
	require.Equal(t, 2, ends)
	require.NoError(t, model.Close())
	require.NoError(t, job.Close())
}

// fitEarly fits noise, so that the validation soon gets worse.
func fitEarly(t *testing.T, s strategies.Strategy) (*loop.History, map[string]float64) {
	const n, width = 64, 16
	x, y := make([]float32, n*width), make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i % 1009)))
	}
	for i := range y {
		y[i] = float32(math.Cos(float64(i * i % 911)))
	}
	set, err := data.New(data.X(x, n, width), data.Y(y, n, 1))
	require.NoError(t, err)
	model, err := flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 16}, nn.Activation("tanh"), nn.Dense{Units: 1}}, flaxlike.WithStrategy(s),
		flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae"), flaxlike.WithLearningRate(0.01))
	require.NoError(t, err)
	defer func() { require.NoError(t, model.Close()) }()
	history, err := model.Fit(t.Context(), set, flaxlike.Fit{Epochs: 40, BatchSize: 16, ValidationSplit: 0.25, Output: io.Discard,
		Callbacks: []loop.Option{callbacks.StopEarly("val_loss", callbacks.Evaluations(2))}})
	require.NoError(t, err)
	found, err := model.Evaluate(t.Context(), set)
	require.NoError(t, err)
	return history, found
}
