package managed_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// A program that is killed and started again as it was, with the one option, ends with the parameters of one that was
// never killed: dropout, Adam, a shuffled set, epochs, evaluations, the best state.
func TestS02_killedAndResumedWithOneOption(t *testing.T) {
	r, errKilled := plugintest.CPU(t), errors.New("killed")
	train, test := stepper(t, managed.TrainStep(noisy)), stepper(t, managed.TestStep(noisy))
	program := func(dir string, killedAt int64) (*managed.State, *loop.History, error) {
		state := newState(t, r, managed.WithOptimizer(optim.New(0.02, optim.Adam{})), managed.WithSeed(5))
		kill := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
			if r.Elapsed.Steps == killedAt {
				return errKilled
			}
			return nil
		})
		result, err := loop.New(
			loop.On(loop.EachStep, train),
			loop.Evaluate("test", test, line(t, 48).Batches(16)).On(loop.Every(loop.Steps(4))),
		).Run(t.Context(), state, line(t, 80).Batches(16, data.Shuffle(3)), loop.Until(loop.Epochs(6)), kill,
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(3)), checkpoint.KeepBest("loss_test")))
		return state, result.History, err
	}
	whole, history, err := program(filepath.Join(t.TempDir(), "whole"), 0)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	for _, at := range []int64{2, 7, 8, 17, 26} {
		_, _, err := program(dir, at)
		require.ErrorIs(t, err, errKilled)
	}
	again, rows, err := program(dir, 0)
	require.NoError(t, err)
	require.Equal(t, bits(t, whole), bits(t, again))
	require.Equal(t, lossesOf(t, history), lossesOf(t, rows))
	t.Logf("S02: killed 5 times in 30 steps and resumed with the one option: 0 differing bits in %d variables and %d rows", len(whole.Names()), rows.Len())
}
