package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func seeded(t *testing.T, r *xla.Runtime, seed int64, chain ...optim.Transformation) *managed.State {
	t.Helper()
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(optim.New(1, chain...)), managed.WithSeed(seed))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

// The noise of each step is the draw of noise with variance 1, times optax's standard deviation of that step.
func TestNoise_deviationsAsOptax(t *testing.T) {
	r, f, none := plugintest.CPU(t), optax(t), batchOf(t, make([]float32, size), 1)
	with := func(noise optim.Noise) (updates [][]float32) {
		state, step, last := seeded(t, r, 7, noise), trainStep(t, raw), make([]float32, size)
		for range f.Steps[len(f.Steps)-1] {
			train(t, step, state, []data.Batch{none})
			now, update := parameters(t, state), make([]float32, size)
			for i := range now {
				update[i] = now[i] - last[i]
			}
			last, updates = now, append(updates, update)
		}
		return updates
	}
	got, ones := with(optim.Noise{Eta: 0.3}), with(optim.Noise{Eta: 1, Gamma: 1e-30})
	squares := 0.0
	for i, n := range f.Steps {
		require.InDelta(t, f.Noise[i], normOf(got[n-1])/normOf(ones[n-1]), 1e-5, "step %d", n)
	}
	for _, update := range ones {
		squares += normOf(update) * normOf(update)
	}
	require.InDelta(t, 1, squares/float64(size*len(ones)), 0.1, "the variance of %d draws", size*len(ones))
}

// Noise repeats with the state's seed, and continues from a checkpoint, bit-identically.
func TestNoise_repeatsWithTheSeed(t *testing.T) {
	r, chain := plugintest.CPU(t), optim.Chain{optim.Noise{Eta: 0.1}, optim.Accumulate(2), optim.Adam{}, optim.Lookahead{Every: 2}}
	batches := slopes(t, 20, 1)
	first, step := seeded(t, r, 7, chain...), trainStep(t, bowl)
	train(t, step, first, batches[:9])
	middle := saved(t, first)
	train(t, step, first, batches[9:])

	other := seeded(t, r, 8, chain...)
	train(t, step, other, batches)
	require.NotEqual(t, parameters(t, first), parameters(t, other), "another seed")
	same := seeded(t, r, 7, chain...)
	train(t, step, same, batches)
	require.Equal(t, bits(t, first), bits(t, same))
	resumed := seeded(t, r, 1, chain...)
	require.NoError(t, resumed.Restore(t.Context(), middle))
	train(t, step, resumed, batches[9:])
	require.Equal(t, bits(t, first), bits(t, resumed))
}
