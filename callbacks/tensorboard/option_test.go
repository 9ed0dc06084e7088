package tensorboard_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

func TestF35_troubleDoesNotReachTheRun(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, dir string) []tensorboard.Option
		err     string
	}{
		{"disk full", func(_ *testing.T, _ string) []tensorboard.Option {
			return []tensorboard.Option{tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return &sick{writes: 3}, nil })}
		}, "no space left on device"},
		{"disk full at once", func(_ *testing.T, _ string) []tensorboard.Option {
			return []tensorboard.Option{tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return &sick{}, nil })}
		}, "no space left on device"},
		{"a file in place of the folder", func(t *testing.T, dir string) []tensorboard.Option {
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
			return nil
		}, "not a directory"},
		{"no rights", func(_ *testing.T, _ string) []tensorboard.Option {
			return []tensorboard.Option{tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return nil, os.ErrPermission })}
		}, "permission denied"},
		{"the folder is removed before", func(*testing.T, string) []tensorboard.Option { return nil }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "runs")
			options := row.prepare(t, dir)
			result, err := training().Run(t.Context(), 0, numbers(50), tensorboard.Write(dir, loop.EachStep, options...))
			require.EqualValues(t, 50, result.Elapsed.Steps)
			require.Equal(t, 50, result.State)
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.err)
			require.ErrorContains(t, err, "loop: at the end: step 50: each step: tensorboard "+dir)
			t.Logf("F35: 50 of 50 steps made; %v", err)
		})
	}
}

func TestEvaluations(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []tensorboard.Option
		entry   string
		folder  string
		tag     string
		err     string
	}{
		{name: "test", entry: "loss_test", folder: "test", tag: "losses/loss"},
		{name: "none of its own", entry: "loss_far", folder: "train", tag: "losses/loss_far"},
		{name: "in front", entry: "val_loss", folder: "val", tag: "losses/loss"},
		{name: "another", options: []tensorboard.Option{tensorboard.Evaluations("far")}, entry: "loss_far", folder: "far", tag: "losses/loss"},
		{name: "in place of", options: []tensorboard.Option{tensorboard.Evaluations("far")}, entry: "loss_test", folder: "train", tag: "losses/loss_test"},
		{name: "the longest", options: []tensorboard.Option{tensorboard.Evaluations("test", "big_test")}, entry: "loss_big_test", folder: "big_test", tag: "losses/loss"},
		{name: "nothing left", entry: "_test", folder: "train", tag: "losses/_test"},
		{name: "off", options: []tensorboard.Option{tensorboard.Evaluations()}, entry: "loss_test", folder: "train", tag: "losses/loss_test"},
		{name: "outside", options: []tensorboard.Option{tensorboard.Evaluations("../x")}, err: `evaluation "../x": want the name of a folder other than "train"`},
		{name: "absolute", options: []tensorboard.Option{tensorboard.Evaluations("/x")}, err: `evaluation "/x": want`},
		{name: "empty", options: []tensorboard.Option{tensorboard.Evaluations("")}, err: `evaluation "": want`},
		{name: "here", options: []tensorboard.Option{tensorboard.Evaluations(".")}, err: `evaluation ".": want`},
		{name: "the training's", options: []tensorboard.Option{tensorboard.Evaluations("train")}, err: `evaluation "train": want`},
		{name: "a queue", options: []tensorboard.Option{tensorboard.InBackground(callbacks.Background{Queue: -1})}, err: "background: queue and deadline must not be negative, got -1 and 0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
				var logs loop.Logs
				logs.Loss(row.entry, 1)
				return s, logs, nil
			}
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(3), tensorboard.Write(dir, loop.EachStep, row.options...))
			if row.err != "" {
				require.ErrorContains(t, err, "loop: callback 1 (each step: tensorboard "+dir+"): "+row.err)
				require.EqualValues(t, 0, result.Elapsed.Steps)
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, entries)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{row.tag, row.tag, row.tag}, only(t, filepath.Join(dir, row.folder)).tags())
		})
	}
}
