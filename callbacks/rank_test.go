package callbacks_test

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// Callbacks that write or show run in one process, and callbacks that decide in all.
func TestAtRank0(t *testing.T) {
	when, dir := loop.Every(loop.Steps(1)), t.TempDir()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, c := range []loop.Callback{
		callbacks.ProgressBar(&bytes.Buffer{}), callbacks.Log(logger, when), callbacks.LogProgress(logger, when),
		callbacks.JSONL(filepath.Join(dir, "a"), when), callbacks.CSV(filepath.Join(dir, "b"), when),
		callbacks.Heartbeat(filepath.Join(dir, "c"), when), callbacks.Notify(callbacks.Notification{URL: "http://localhost"}), callbacks.Profile(dir, loop.Steps(1), loop.Steps(1)), tensorboard.Write(dir, when),
	} {
		require.True(t, c.AtRank0, c.Name)
	}
	for _, c := range []loop.Callback{callbacks.TimeLimit(time.Hour), callbacks.Watchdog(time.Hour, io.Discard)} {
		require.False(t, c.AtRank0, c.Name)
	}
}

type two struct{}

func (two) Rank() int           { return 0 }
func (two) Size() int           { return 2 }
func (two) Agree([]int64) error { return nil }

// A bar on a terminal and one on a file have one schedule, or processes would part where only one has a terminal.
func TestProgressBar_scheduleOfRanks(t *testing.T) {
	c := callbacks.ProgressBar(&bytes.Buffer{})
	from := loop.Beginning{Until: loop.Steps(100)}
	require.NotContains(t, c.WhenRun(from).String(), "50ms")
	from.Job = two{}
	when := c.WhenRun(from)
	require.NoError(t, when.Err())
	require.Contains(t, when.String(), "50ms")
	require.Contains(t, when.String(), "30s")
}
