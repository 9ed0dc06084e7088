package callbacks_test

import (
	"bytes"
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

// S52: a heartbeat does not grow without end, and a reader always finds a line.
func TestHeartbeat_isBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps")
	h, err := byHand(callbacks.Heartbeat(path, loop.EachStep))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("timestamp_ms:0.000,step_number:1\n"), (1<<20)/33), 0o600))
	sizes := 0
	for step := range int64(3) {
		require.NoError(t, h.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step}}))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), 1<<20)
		require.True(t, strings.HasSuffix(string(text), fmt.Sprintf(",step_number:%d\n", step)))
		sizes = strings.Count(string(text), "\n")
	}
	require.NoError(t, h.End(t.Context(), loop.Ending{}))
	require.Equal(t, 3, sizes)
	require.NoFileExists(t, path+".tmp")
}
