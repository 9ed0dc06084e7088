package tensorboard_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

func TestHyperparameters_refuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		values map[string]any
		err    string
	}{
		{"a function", map[string]any{"f": func() {}}, "hyperparameter f: want a boolean, a number, a text, a list, a map with text keys or a value with a String method, got func()"},
		{"within", map[string]any{"a": []any{1, map[string]any{"b": make(chan int)}}}, "hyperparameter a.1.b: want a boolean"},
		{"twice", map[string]any{"a.b": 1, "a": map[string]int{"b": 2}}, "hyperparameter a.b comes twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := training().Run(t.Context(), 0, numbers(3), tensorboard.Write(t.TempDir(), loop.EachStep, tensorboard.Hyperparameters(row.values)))
			require.ErrorContains(t, err, row.err)
		})
	}
}

// A run that failed is a session that failed.
func TestHyperparameters_ofARunThatFailed(t *testing.T) {
	dir := t.TempDir()
	_, err := training().Run(t.Context(), 0, numbers(3), tensorboard.Write(dir, loop.EachStep, tensorboard.Hyperparameters(map[string]any{})),
		loop.Watch(loop.At(loop.Steps(2)), func(context.Context, loop.Report) error { return os.ErrInvalid }))
	require.ErrorIs(t, err, os.ErrInvalid)
	require.Contains(t, seen(t, "1", read(t, dir))[1], "status 2")
}
