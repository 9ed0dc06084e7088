//go:build unix

package flaxlike_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

const (
	stuckFolder = "LAZO_FLAXLIKE_TEST_STUCK_FOLDER"
	stuckWith   = "LAZO_FLAXLIKE_TEST_STUCK_WITH"
	stuckAt     = 12 // batches come, of 5 an epoch
)

// fitStuck trains on a source that yields some batches and then calls blocks, which does not return. It reports when
// the source is there, and the training after the last batch.
func fitStuck(ctx context.Context, t *testing.T, dir, with string, tell, blocks func()) error {
	var there atomic.Int32
	both := func() {
		if there.Add(1) == 2 {
			tell()
		}
	}
	set := line(t, 64).Batches(32)
	var batches loop.Data[data.Batch] = func(yield func(data.Batch, error) bool) {
		n := 0
		for b, err := range set.From(0) {
			if n++; n > stuckAt {
				both()
				blocks()
			}
			if !yield(b, err) {
				return
			}
		}
	}
	if with == "prefetch" {
		batches = loop.Data[data.Batch](data.Prefetch(batches.From(0), 3))
	}
	folder, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	_, err = newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).FitBatches(ctx, batches, quiet(flaxlike.Fit{Epochs: 1000, StepsPerEpoch: 5,
		Callbacks: []loop.Option{resume(folder), loop.Watch(loop.At(loop.Steps(stuckAt)), func(context.Context, loop.Report) error { both(); return nil })}}))
	require.NoError(t, folder.Close())
	return err
}

// TestStuckChild is the process that gets the signal; run for itself it does nothing.
func TestStuckChild(t *testing.T) {
	dir := os.Getenv(stuckFolder)
	if dir == "" {
		return
	}
	ctx, stop := loop.WithSignals(context.Background())
	err := fitStuck(ctx, t, dir, os.Getenv(stuckWith), func() { fmt.Println("stuck") }, func() {
		for {
			time.Sleep(time.Hour)
		}
	})
	stop()
	fmt.Fprintln(os.Stderr, err)
	loop.Exit(err)
	os.Exit(0)
}

// The training of a source that blocks without end ends within a second of its deadline, or of a signal to its process,
// and its folder has the state of the last batch that came.
func TestF49_aSourceThatBlocksForEver(t *testing.T) {
	const allowed = 5 * time.Second // a second, and time for a busy machine
	ends, longest := 0, time.Duration(0)
	ended := func(t *testing.T, began time.Time, dir string) {
		took := time.Since(began)
		require.Less(t, took, allowed)
		ends, longest = ends+1, max(longest, took)
		c, err := openFolder(t, dir, checkpoint.Options{}).Newest(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, stuckAt, c.Step)
	}
	for _, with := range []string{"nothing", "prefetch"} {
		t.Run("deadline, with "+with, func(t *testing.T) {
			dir, let := t.TempDir(), make(chan struct{})
			defer close(let)
			ctx, cancel := context.WithCancelCause(t.Context())
			began := make(chan time.Time, 1)
			err := fitStuck(ctx, t, dir, with, func() {
				began <- time.Now()
				cancel(context.DeadlineExceeded)
			}, func() { <-let })
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, loop.ErrSourceLeft)
			ended(t, <-began, dir)
		})
		t.Run("SIGTERM, with "+with, func(t *testing.T) {
			dir := t.TempDir()
			child := exec.Command(os.Args[0], "-test.run=^TestStuckChild$")
			child.Env = append(os.Environ(), stuckFolder+"="+dir, stuckWith+"="+with)
			out, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "stuck" {
			}
			require.Equal(t, "stuck", lines.Text())
			began := time.Now()
			require.NoError(t, child.Process.Signal(syscall.SIGTERM))
			var status *exec.ExitError
			require.True(t, errors.As(child.Wait(), &status))
			require.Equal(t, 143, status.ExitCode())
			ended(t, began, dir)
		})
	}
	t.Logf("F49: %d ends of a training whose source blocks for ever, by deadline and by SIGTERM, with and without Prefetch: at most %v, each saved at step %d",
		ends, longest.Round(time.Millisecond), stuckAt)
}
