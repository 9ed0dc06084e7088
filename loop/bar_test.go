package loop_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func TestF34_barOutsideATerminal(t *testing.T) {
	var out bytes.Buffer
	_, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(200), loop.Until(loop.Steps(200)), loop.ProgressBar(&out))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 11, out.String())
	require.NotContains(t, out.String(), "\r")
	require.NotContains(t, out.String(), "\x1b")
	require.Equal(t, "  1/200 - sum: 0.0000", lines[0])
	require.True(t, strings.HasPrefix(lines[1], " 20/200 - ETA "), lines[1])
	require.Contains(t, lines[1], " - sum: 190.0000")
	require.True(t, strings.HasPrefix(lines[10], "200/200 - "), lines[10])
	require.Contains(t, lines[10], " - sum: 19900.0000 - ")
	require.Contains(t, lines[10], " examples/s")
	t.Logf("F34: %d lines, 0 control characters", len(lines))
}

type brokenPipe struct{ writes int }

func (w *brokenPipe) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("broken pipe")
}

func TestF34_barOnABrokenPipe(t *testing.T) {
	w := &brokenPipe{}
	result, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(200), loop.Until(loop.Steps(200)), loop.ProgressBar(w))
	require.NoError(t, err)
	require.EqualValues(t, 200, result.Elapsed.Steps)
	require.Equal(t, 1, w.writes, "a writer that failed is left alone")
}

func TestBar_showsAValueThatIsNotLoggedInEachStep(t *testing.T) {
	var out bytes.Buffer
	rare := loop.OnFunc(loop.Every(loop.Steps(7)), func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("rare", 0.25)
		return s, logs, nil
	})
	_, err := loop.New(loop.OnFunc(loop.EachStep, add), rare).Run(t.Context(), 0, numbers(9), loop.ProgressBar(&out))
	require.NoError(t, err)
	require.Contains(t, out.String(), "9 steps - ")
	require.Contains(t, out.String(), "rare: 0.2500")
}

func TestBar_nilShowsNothing(t *testing.T) {
	_, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(9), loop.ProgressBar(nil))
	require.NoError(t, err)
}
