package flaxlike_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

func openFolder(t *testing.T, dir string, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	f, err := checkpoint.Open(dir, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// resume is the option of a run that is saved into a folder after each epoch, unless the options say otherwise, and
// resumed from it; nil without a folder.
func resume(folder *checkpoint.Folder, options ...checkpoint.Options) loop.Option {
	if folder == nil {
		return nil
	}
	return folder.Resume(append([]checkpoint.Options{checkpoint.Every(loop.Epochs(1))}, options...)...)
}

// noisy has all that a resumed run must find again: random numbers, statistics, averages, moments.
func noisy(t *testing.T) *flaxlike.Model {
	return newModel(t, nn.Sequential{nn.Dense{Units: 8}, nn.BatchNorm{}, nn.Dropout{Rate: 0.5}, nn.Dense{Units: 3}},
		flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(3))
}

// A run that was killed, or interrupted, and is started again as it was ends with the same bits of parameters and
// history.
func TestFit_killedAndStartedAgain(t *testing.T) {
	set := sorted(t, 152) // 5 steps an epoch, the last one of 24 examples
	fit := func(ctx context.Context, m *flaxlike.Model, folder *checkpoint.Folder, batches bool, callbacks ...loop.Option) (*loop.History, error) {
		f := quiet(flaxlike.Fit{Epochs: 4, Validation: set, SanityEvaluation: true, Callbacks: append(callbacks, resume(folder, checkpoint.Every(loop.Steps(3))))})
		if !batches {
			return m.Fit(ctx, set, f)
		}
		f.StepsPerEpoch = 5
		return m.FitBatches(ctx, set.Batches(32, data.Shuffle(3), data.Kept), f)
	}
	whole := noisy(t)
	h, err := fit(t.Context(), whole, nil, false)
	require.NoError(t, err)
	wantValues := values(t, whole)

	killed := errors.New("killed")
	for _, row := range []struct {
		name      string
		at, again loop.Steps // where it continues
		interrupt bool       // else it fails, and saves nothing more
		batches   bool
	}{
		{"before the first checkpoint", 2, 0, false, false},
		{"inside of an epoch", 8, 6, false, false},
		{"at the end of an epoch", 10, 9, false, true},
		{"interrupted", 13, 13, true, false},
		{"interrupted, in batches that come one by one", 13, 13, true, true},
		{"after the end", 20, 20, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := openFolder(t, t.TempDir(), checkpoint.Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := fit(ctx, noisy(t), folder, row.batches, loop.Watch(loop.At(row.at), func(context.Context, loop.Report) error {
				if row.interrupt {
					cancel(killed)
					return nil
				}
				return killed
			}))
			if row.at < 20 {
				require.ErrorIs(t, err, killed)
			}
			again := noisy(t)
			from := loop.Steps(-1)
			got, err := fit(t.Context(), again, folder, row.batches, loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
				from = loop.Steps(r.From.Steps)
				return nil
			}))
			require.NoError(t, err)
			if row.at < 20 {
				require.Equal(t, row.again, from)
			} else {
				require.EqualValues(t, -1, from, "no turn is made")
			}
			require.Equal(t, wantValues, values(t, again))
			for _, name := range []string{"elapsed.steps", "epoch", "loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"} {
				require.Equal(t, series(t, h, name), series(t, got, name), name)
			}
		})
	}
}

// The folder's own rules hold: what it keeps, and the best.
func TestFit_keepsTheBestCheckpoint(t *testing.T) {
	set := line(t, 128)
	folder := openFolder(t, t.TempDir(), checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "val_loss"}}})
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 5, Validation: set, Callbacks: []loop.Option{resume(folder)}}))
	require.NoError(t, err)
	list, err := folder.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1, "the last is the best")
	require.EqualValues(t, 20, list[0].Step)

	called := 0
	count := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { called++; return nil })
	for i, options := range [][]loop.Option{{resume(folder)}, {loop.Options(resume(folder), count)}, {count, loop.Options(loop.Options(resume(folder)))}} {
		called = 0
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{FastDevRun: true, Epochs: 5, Callbacks: options}))
		require.NoError(t, err)
		require.Equal(t, 1, h.Len(), "it resumes nothing")
		if i > 0 {
			require.Equal(t, 1, called, "other options that are combined with Resume count")
		}
	}
	after, err := folder.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, list, after, "a dev run saves nothing")
}
