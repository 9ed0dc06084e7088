//go:build unix

package callbacks_test

import (
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
		_, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(9), callbacks.Heartbeat(path, loop.EachStep))
		return err
	})
	require.ErrorContains(t, err, path+": is no regular file")
}

func TestProfile_pipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.out")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	err := returns(t, func() error {
		_, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(9), callbacks.Profile(dir, loop.Steps(1), loop.Steps(2)))
		return err
	})
	require.ErrorContains(t, err, path+": is no regular file")
}
