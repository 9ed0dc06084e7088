package tensorboard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// Without trouble nothing is dropped that the queue holds, and a cancelled run has all that it logged.
func TestWrite_ofACancelledRun(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	_, err := training().Run(ctx, 0, numbers(100), tensorboard.Write(dir, loop.EachStep),
		loop.Watch(loop.At(loop.Steps(42)), func(context.Context, loop.Report) error { cancel(gone); return nil }))
	require.ErrorIs(t, err, gone)
	require.Len(t, only(t, filepath.Join(dir, "train")).points, 42)
}

func TestWrite_trainingAndEvaluationsAreRunsOfTheirOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "1")
	result, err := training().Run(t.Context(), 0, numbers(20), tensorboard.Write(dir, loop.EachStep.AndAtStart()))
	require.NoError(t, err)
	require.EqualValues(t, 20, result.Elapsed.Steps)

	train, val := only(t, filepath.Join(dir, "train")), only(t, filepath.Join(dir, "val"))
	require.Equal(t, "brain.Event:2", train.version)
	require.Empty(t, train.purge)
	steps, values := train.series("losses/loss")
	require.Len(t, train.points, 20)
	for i := range steps {
		require.EqualValues(t, i+1, steps[i])
		require.EqualValues(t, float32(1/float64(i+1)), values[i], "to the last bit")
		require.InDelta(t, float64(result.Elapsed.Date)/1e9, train.points[i].seconds, 60)
		require.Equal(t, "scalars", train.points[i].plugin)
	}
	steps, _ = val.series("losses/loss")
	require.Equal(t, []int64{0, 5, 10, 15, 20}, steps)
	require.NoDirExists(t, filepath.Join(dir, "test"), "folders come with their first value")

	files, err := os.ReadDir(filepath.Join(dir, "train"))
	require.NoError(t, err)
	require.Regexp(t, `^events\.out\.tfevents\.\d{10}\.[^/]+\.\d+\.0\.v2$`, files[0].Name())
}

// A run from the start hides the old curves, also those of evaluations that it does not come to.
func TestWrite_anew(t *testing.T) {
	dir := t.TempDir()
	for _, steps := range []int{7, 2} {
		_, err := training().Run(t.Context(), 0, numbers(steps), tensorboard.Write(dir, loop.EachStep))
		require.NoError(t, err)
	}
	require.Equal(t, []int64{1, 2}, visible(read(t, filepath.Join(dir, "train")), "losses/loss"))
	require.Empty(t, visible(read(t, filepath.Join(dir, "val")), "losses/loss"))
}

// A new file sorts after the existing ones, even if the clock was set back or runs follow within a second.
func TestWrite_namesComeInOrder(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "train")
	require.NoError(t, os.MkdirAll(folder, 0o750))
	for _, name := range []string{"events.out.tfevents.7000000000.host.9.9.v2", "events.out.tfevents.x", "events.out.tfevents.99999999999999999999.a"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	for range 3 {
		_, err := training().Run(t.Context(), 0, numbers(1), tensorboard.Write(dir, loop.EachStep))
		require.NoError(t, err)
	}
	for i := range 3 {
		paths, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("events.out.tfevents.700000000%d.*.v2", i+1)))
		require.NoError(t, err)
		require.Len(t, paths, 1)
	}
}
