//go:build unix

package callbacks_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// returns fails where do waits, as opening or reading a pipe does.
func returns(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for the other end of a pipe")
		return nil
	}
}

func fifo(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestHeartbeat_pipe(t *testing.T) {
	path := fifo(t)
	err := returns(t, func() error {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.Heartbeat(path, loop.EachStep))
		return err
	})
	require.ErrorContains(t, err, path+": is not a regular file")
}

func TestProfile_pipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.out")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	err := returns(t, func() error {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.Profile(dir, loop.Steps(1), loop.Steps(2)))
		return err
	})
	require.ErrorContains(t, err, path+": is not a regular file")
}

func TestWriter_pipe(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, _ string) {
		path := fifo(t)
		err := returns(t, func() error {
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), form.option(path, loop.EachStep))
			return err
		})
		require.ErrorContains(t, err, path+": is not a regular file")
	})
}

// The temporary file for new columns must be regular too.
func TestWriter_pipeBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.csv")
	require.NoError(t, syscall.Mkfifo(path+".tmp", 0o600))
	w, err := byHand(callbacks.CSV(path, loop.EachStep))
	require.NoError(t, err)
	err = returns(t, func() error {
		for step, name := range []string{"a", "b"} {
			if err := w.Watch(t.Context(), loop.Report{Elapsed: at(int64(step) + 1), Logs: metric(name, 1)}); err != nil {
				return err
			}
		}
		return w.End(t.Context(), loop.Ending{})
	})
	require.ErrorContains(t, err, path+".tmp: is not a regular file")
}

// As /dev/stdout is where the output goes into another program.
func TestWriter_linkToAnOpenPipe(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		require.NoError(t, os.Symlink(fifo(t), path))
		keep, err := os.OpenFile(path, os.O_RDWR, 0) // both ends are open: opening does not wait, reading does
		require.NoError(t, err)
		defer keep.Close()
		err = returns(t, func() error {
			return form.byHand(t, path).Watch(t.Context(), loop.Report{Elapsed: at(1), Logs: metric("m", 1)})
		})
		require.ErrorContains(t, err, path+": is not a regular file")
	})
}
