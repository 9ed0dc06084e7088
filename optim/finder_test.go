package optim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// sweep is the typical curve of a sweep: constant, then falling fastest at a rate, then rising without end.
func sweep(n int, fastest float64) (rates, losses []float64) {
	s := optim.ExponentialDecay(1e-6, 10/1e-6, n-1)
	for i := range n {
		r := s.At(int64(i))
		x := math.Log10(r / fastest)
		rates, losses = append(rates, r), append(losses, 2-1.5/(1+math.Exp(-4*x))+math.Exp(5*(x-1.5)))
	}
	return rates, losses
}

func TestSuggestRate(t *testing.T) {
	for _, fastest := range []float64{1e-4, 1e-3, 1e-2} {
		rates, losses := sweep(200, fastest)
		rate, err := optim.SuggestRate(rates, losses)
		require.NoError(t, err)
		require.InDelta(t, math.Log10(fastest), math.Log10(rate), 0.1, "got %g, want about %g", rate, fastest)
		for i := 180; i < 200; i++ {
			losses[i] = math.NaN()
		}
		again, err := optim.SuggestRate(rates, losses)
		require.NoError(t, err)
		require.Equal(t, rate, again, "what comes after the loss went astray does not count")
	}
}

// A diverged training may recover, and its loss then fall faster than before.
func TestSuggestRate_recovery(t *testing.T) {
	rates, losses := sweep(200, 1e-3)
	want, err := optim.SuggestRate(rates, losses)
	require.NoError(t, err)
	for i := 115; i < 200; i++ { // up to 2.4, which does not count as diverged, and down again
		losses[i] = 2.4
		if i >= 140 {
			losses[i] = 0.9
		}
	}
	rate, err := optim.SuggestRate(rates, losses)
	require.NoError(t, err)
	require.Equal(t, want, rate)
}

func TestSuggestRate_refuses(t *testing.T) {
	rates, losses := sweep(100, 1e-3)
	rising := append([]float64(nil), rates...)
	rising[7] = rising[6]
	nan := append([]float64(nil), losses...)
	nan[4] = math.NaN()
	for _, row := range []struct {
		name          string
		rates, losses []float64
		want          string
	}{
		{"lengths", rates, losses[1:], "optim: suggest a learning rate: 100 rates and 99 losses, expected the same number of both"},
		{"rates", rising, losses, fmt.Sprintf("optim: suggest a learning rate: rate 7 is %g, expected positive, increasing rates", rising[7])},
		{"too few", rates, nan, "optim: suggest a learning rate: 4 of 100 losses are usable, expected 10 or more: sweep with smaller steps, or from a lower rate"},
		{"rising", rates[:50], rates[:50], "optim: suggest a learning rate: the losses never fall between the rates 1e-06 and 4.328761281083059e-06: sweep lower ones"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := optim.SuggestRate(row.rates, row.losses)
			require.EqualError(t, err, row.want)
		})
	}
	_, err := optim.SuggestRate(rates[:50], rates[:50])
	require.ErrorContains(t, err, "the losses never fall")
}

// A whole use: sweep on a state, suggest, restore, train with the suggestion.
func TestSuggestRate_ofARun(t *testing.T) {
	const steps = 100
	sweep := optim.ExponentialDecay(1e-4, 100/1e-4, steps-1)
	state := newState(t, plugintest.CPU(t), optim.New(1, optim.ScaleBySchedule(sweep)))
	step := trainStep(t, func(b *managed.Builder) {
		bowl(b)
	})
	flat := batchOf(t, make([]float32, size), 1)
	batches := func(yield func(data.Batch, error) bool) {
		for yield(flat, nil) {
		}
	}
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](batches), loop.Until(loop.Steps(steps)))
	require.NoError(t, err)
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	rates := make([]float64, steps)
	for i := range rates {
		rates[i] = sweep.At(int64(i))
	}
	rate, err := optim.SuggestRate(rates, losses)
	require.NoError(t, err)
	// The steepest direction has curvature 0.75: a run diverges from 2/0.75 on.
	require.Greater(t, rate, 0.01)
	require.Less(t, rate, 2/0.75)
	after := run(t, plugintest.CPU(t), optim.New(rate), repeat(flat, 200))
	_, logs, err := trainStep(t, bowl).Step(t.Context(), after, flat)
	require.NoError(t, err)
	loss, err := logs.Float("loss")
	require.NoError(t, err)
	require.Less(t, loss, losses[0]/10)
	t.Logf("suggested %.3g; the loss fell from %.3g to %.3g", rate, losses[0], loss)
}

func repeat(b data.Batch, n int) []data.Batch {
	all := make([]data.Batch, n)
	for i := range all {
		all[i] = b
	}
	return all
}
