//go:build unix

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

const childPipe = "LAZO_LOOP_TEST_PIPE"

// TestPipeChild is the process with a stderr that has no reader. Run directly it does nothing.
func TestPipeChild(t *testing.T) {
	how := os.Getenv(childPipe)
	if how == "" {
		return
	}
	ctx, stop := context.Background(), func() {}
	if how != "bar" {
		ctx, stop = loop.WithSignals(ctx)
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(ctx, 0, numbers(5), callbacks.ProgressBar(os.Stderr), loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
		if how == "signals" { // the user's own printing
			_, _ = fmt.Fprintln(os.Stderr, "a step")
		}
		return nil
	}))
	stop()
	if how == "stopped" {
		_, _ = fmt.Fprintln(os.Stderr, "nobody reads it")
	}
	fmt.Println("done")
	loop.Exit(errors.Join(err, errors.New("at the end")))
}

// Output of a run, and under WithSignals of its program, does not end the process if it has no reader. Nor does the
// final error, whose exit code counts.
func TestR26_aClosedStderrEndsNoRun(t *testing.T) {
	for _, how := range []string{"bar", "signals"} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		cmd := exec.Command(os.Args[0], "-test.run=^TestPipeChild$")
		cmd.Env, cmd.Stderr = append(os.Environ(), childPipe+"="+how), w
		out, err := cmd.Output()
		require.Error(t, err)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s: %v: %s", how, err, out)
		require.Equal(t, "done\n", string(out), how)
		require.NoError(t, w.Close())
	}
}

// After the run, Go's default applies again: a program that prints to a pipe without a reader (to head) ends.
func TestWithSignals_afterwardsABrokenPipeEnds(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd := exec.Command(os.Args[0], "-test.run=^TestPipeChild$")
	cmd.Env, cmd.Stderr = append(os.Environ(), childPipe+"=stopped"), w
	out, err := cmd.Output()
	require.Error(t, err)
	require.Equal(t, syscall.SIGPIPE, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%v: %s", err, out)
	require.NoError(t, w.Close())
}
