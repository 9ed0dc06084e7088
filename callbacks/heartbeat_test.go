package callbacks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestB76_heartbeatHoldsTheSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps")
	require.NoError(t, os.WriteFile(path, []byte("of an earlier run\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(slowAdd))).Run(t.Context(), 0, numbers(7), callbacks.Heartbeat(path, loop.Every(loop.Steps(3))))
		require.NoError(t, err)
	})
	// The clock of a synctest begins in 2000.
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("timestamp_ms:%d.000,step_number:3\ntimestamp_ms:%d.000,step_number:6\n", begin+21, begin+42), string(got))
}

func TestB64_heartbeatAtStepOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps")
	h, err := byHand(callbacks.Heartbeat(path, loop.EachStep))
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err, "no steps yet is visible")
	require.Empty(t, got)
	for _, step := range []int64{1, 9, 2} { // a restart may go back
		require.NoError(t, h.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step}}))
	}
	require.NoError(t, h.End(t.Context(), loop.Ending{}))
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, `^timestamp_ms:\d+\.\d{3},step_number:1\ntimestamp_ms:\d+\.\d{3},step_number:9\ntimestamp_ms:\d+\.\d{3},step_number:2\n$`, string(got))
}

// S54: the file is bounded, and its last line is the newest step. Before, it grew by each line.
func TestS54_heartbeatIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps")
	h, err := byHand(callbacks.Heartbeat(path, loop.EachStep))
	require.NoError(t, err)
	largest, times := 0, 0
	for step := range int64(4000) {
		require.NoError(t, h.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step}}))
		if step%100 != 0 && step < 1300 {
			continue
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(got), fmt.Sprintf(",step_number:%d\n", step)))
		if len(got) < largest {
			times++
		}
		largest = len(got)
		require.LessOrEqual(t, largest, 64<<10)
		require.Regexp(t, `^timestamp_ms:`, string(got))
	}
	require.Positive(t, times)
}

func TestF35_heartbeatInADirectoryThatGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	result, err := l.Run(t.Context(), 0, numbers(9), callbacks.Heartbeat(filepath.Join(dir, "steps"), loop.EachStep))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "at the end: ")
	require.EqualValues(t, 9, result.Elapsed.Steps, "the run is unaffected")
	require.NoError(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "steps")
	h, err := byHand(callbacks.Heartbeat(path, loop.EachStep))
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, h.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 5}}))
	require.NoError(t, h.End(t.Context(), loop.Ending{}))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(got), ",step_number:5\n"), "it comes again")
}
