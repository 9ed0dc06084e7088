package callbacks_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestF34_barOnABrokenPipe(t *testing.T) {
	w := &brokenPipe{}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(200), loop.Until(loop.Steps(200)), callbacks.ProgressBar(w))
	require.NoError(t, err)
	require.EqualValues(t, 200, result.Elapsed.Steps)
	require.Equal(t, 1, w.writes, "a writer that failed is left alone")

	// A real pipe, whose reader closes during the run.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	left := loop.Watch(loop.At(loop.Steps(100)), func(context.Context, loop.Report) error {
		line := make([]byte, 1<<10)
		n, err := read.Read(line)
		require.Contains(t, string(line[:n]), "100/200 - ")
		return errors.Join(err, read.Close())
	})
	left.Order = 1
	result, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(200), loop.Until(loop.Steps(200)), callbacks.ProgressBar(write), left)
	require.NoError(t, err)
	require.EqualValues(t, 200, result.Elapsed.Steps)
	require.NoError(t, write.Close())
	t.Log("F34: a bar whose pipe nobody reads any more, from the first line and from the middle: 200 of 200 steps")
}
