package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Saves come in every place of the options, as do restarts; none changes a bit.
func TestF10_resumeIsTheSameRun(t *testing.T) {
	const steps = 300
	whole, _ := resumed(t, openMem(t, &vfs.Mem{}, checkpoint.Options{}), steps)
	random := rand.New(rand.NewPCG(10, 10))
	for range 20 {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2, Best: 1, Metric: "test", Mode: loop.Lowest}}})
		at := loop.Steps(1 + random.IntN(steps-1))
		first, from := resumed(t, f, at)
		require.Zero(t, from.Steps)
		second, from := resumed(t, f, steps)
		require.Equal(t, first.Elapsed.Steps, from.Steps, "the last step is saved, whatever the schedule")
		require.Equal(t, math.Float64bits(whole.State.Weight), math.Float64bits(second.State.Weight), "stopped at %v", at)
		require.Equal(t, whole.State.Rate, second.State.Rate)
		require.Equal(t, rows(t, whole.History), rows(t, second.History))
		require.GreaterOrEqual(t, second.Elapsed.Time, from.Time)
		require.NoError(t, f.Close())
	}
	require.Less(t, whole.State.Rate, 0.9, "the plateau had its say")
	t.Logf("F10: 20 stops in %d steps, in blocks, with a plateau: 0 differing bits, rates or rows", steps)
}

// A rate that is changed in the turn of the save is saved, even if the watcher comes later.
func TestSaveLooksLast(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	state := &counter{Rate: 1}
	_, _, err := run(t.Context(), counting(), state, saves(f, loop.EachStep), loop.Until(loop.Steps(8)),
		loop.Watch(loop.At(loop.Steps(3)), func(context.Context, loop.Report) error { state.Rate = 0.25; return nil }))
	require.NoError(t, err)
	for step, want := range map[checkpoint.Step]float64{2: 1, 3: 0.25} {
		var c counter
		if _, err := looked(f, &c, at(step)); !errors.Is(err, checkpoint.ErrNoStep) { // a slow disk has fewer
			require.NoError(t, err)
			require.Equal(t, want, c.Rate)
		}
	}
}

// Content that cannot be saved, restored or opened is an error before the first step.
func TestResume_refuses(t *testing.T) {
	made := 0
	try := func(options ...loop.Option) error {
		made = 0
		count := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { made++; return nil })
		_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, append(options, loop.Until(loop.Steps(30)), count)...)
		return err
	}
	folder := func(keep ...checkpoint.Retention) *checkpoint.Folder {
		return openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: keep})
	}
	var none *checkpoint.Folder
	for _, row := range []struct {
		name   string
		option loop.Option
		want   string
	}{
		{"no folder", none.Resume(), "checkpoint: resume: no folder given"},
		{"no name", checkpoint.Resume(""), "the folder has no name; give a path"},
		{"an open folder that is opened otherwise", folder().Resume(checkpoint.Options{Overwrite: true}), "the folder is open: give Overwrite to Open"},
		{"a folder to read", checkpoint.Resume(t.TempDir(), checkpoint.Options{ReadOnly: true}), "ReadOnly: a run saves into its folder"},
		{"a step that is not there", folder().Resume(at(3)), checkpoint.ErrNoStep.Error()},
		{"no pointer", folder().Resume(checkpoint.Options{Also: map[string]any{"position": 3}}), `Also "position": expected a pointer to the value to save and restore, got int`},
		{"a nil pointer", folder().Resume(checkpoint.Options{Also: map[string]any{"position": (*int)(nil)}}), "got *int"},
		{"a negative number", folder().Resume(checkpoint.Options{Tolerate: -1}), "Tolerate is -1: expected 0 to 2147483647"},
		{"no period", folder().Resume(checkpoint.Every(nil)), "period"},
		{"a metric of an unknown kind", folder().Resume(checkpoint.KeepBest("test")), `it is not known whether a lower or a higher "test" is better: give Options{Best: "test", Mode: loop.Lowest} or loop.Highest`},
		{"a metric without a name", folder().Resume(checkpoint.KeepBest("")), "without the name of a metric"},
		{"the other direction", folder().Resume(checkpoint.Options{Best: "test_loss", Mode: loop.Highest}), `by its name "test_loss" is better when lower: use Lowest, or no mode; if this is intended, set AgainstName`},
		{"a mode that is none", folder().Resume(checkpoint.Options{Best: "test", Mode: 7}), "mode must be Lowest or Highest"},
		{"a mode of no metric", folder().Resume(checkpoint.Options{Mode: loop.Lowest}), "without the name of a metric"},
		{"a mode of another best", folder().Resume(checkpoint.Options{Best: "loss", Mode: loop.Lowest}, checkpoint.KeepBest("test")), "it is not known whether"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.ErrorContains(t, try(row.option), row.want)
			require.Zero(t, made)
		})
	}
	require.NoError(t, try(folder().Resume(checkpoint.Options{Best: "loss", Mode: loop.Highest, AgainstName: true})))
	require.ErrorContains(t, try(folder(checkpoint.Retention{Best: 1, Metric: "accuracy", Mode: loop.Lowest}).Resume()), `accuracy`, "no entry has that name")
	for name, option := range map[string]checkpoint.Options{"Tolerate": {Tolerate: 1}, "When or Every": checkpoint.Every(loop.Steps(3)), "Best or KeepBest": checkpoint.KeepBest("loss"), "Same": {Same: 1}} {
		_, err := checkpoint.Open(t.TempDir(), option)
		require.ErrorContains(t, err, name+" is an option of Resume; give it there")
	}

	g := folder()
	require.NoError(t, try(saves(g, loop.Never)))
	require.EqualValues(t, []checkpoint.Step{30}, steps(t, g))
	h := folder()
	twice := "the run has two options checkpoint.Resume for the folder %s: give all Options to one of them"
	require.ErrorContains(t, try(h.Resume(), h.Resume()), fmt.Sprintf(twice, h.Dir()))
	require.NoError(t, try(h.Resume()), "the folder is free again")
	dir := t.TempDir()
	here := dir + "/../" + filepath.Base(dir)
	require.ErrorContains(t, try(checkpoint.Resume(dir, checkpoint.Every(loop.Steps(9))), checkpoint.Resume(here, checkpoint.KeepBest("loss"))), fmt.Sprintf(twice, here))
	require.NoError(t, try(checkpoint.Resume(dir), checkpoint.Resume(t.TempDir())), "two folders")
	opened, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, try(opened.Resume(), checkpoint.Resume(dir)), fmt.Sprintf(twice, dir))
	err = try(checkpoint.Resume(dir))
	require.ErrorContains(t, err, dir+": this process has opened the folder already and writes there: use that Folder")
	require.NotContains(t, err.Error(), "stop it")
	require.NoError(t, opened.Close())

	ints := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, _ int64) (int, loop.Logs, error) { return s, loop.Logs{}, nil })))
	_, _, err = run(t.Context(), ints, 0, folder().Resume(), loop.Until(loop.Steps(3)))
	require.ErrorContains(t, err, "a state of type int cannot be saved and restored: give it the methods Content and Restore of checkpoint.State")
	savesNamed := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s named, _ int64) (named, loop.Logs, error) { return s, loop.Logs{}, nil })))
	_, _, err = run(t.Context(), savesNamed, named{"own"}, folder().Resume(), loop.Until(loop.Steps(3)))
	require.ErrorContains(t, err, "a state of type checkpoint_test.named cannot be saved and restored: give it the methods Content and Restore of checkpoint.State")

	value := 1
	err = try(folder().Resume(checkpoint.Options{When: loop.EachStep, Also: map[string]any{"rate": &value}}))
	require.ErrorContains(t, err, `the section "rate" already exists`)
}
