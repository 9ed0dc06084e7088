//go:build unix

package flaxlike_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

const childFolder = "LAZO_FLAXLIKE_TEST_FOLDER"

// TestF50Child is a process that trains with checkpoints, silent at first; run for itself it does nothing.
func TestF50Child(t *testing.T) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return
	}
	for i, f := range []flaxlike.Fit{{Output: io.Discard}, {}, {Lines: true}} {
		if i == 1 { // its stderr has no reader from here
			fmt.Println("silent")
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		folder, err := checkpoint.Open(dir, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "val_loss"}}})
		require.NoError(t, err)
		set := line(t, 128)
		_, err = newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(32+i)).Fit(t.Context(), set,
			flaxlike.Fit{Epochs: 3 * (i + 1), Validation: set, Callbacks: []loop.Option{resume(folder)}, Output: f.Output, Lines: f.Lines})
		require.NoError(t, err)
		require.NoError(t, folder.Close())
		fmt.Println([]string{"silent", "bar", "lines"}[i])
	}
}

// A whole process trains with checkpoints. It prints nothing unasked, and a stderr without a reader ends no training.
func TestF50_closedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestF50Child$", "-test.v=false")
	cmd.Env = append(os.Environ(), childFolder+"="+t.TempDir())
	cmd.Stderr = w
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	said := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r)
		said <- b
	}()
	var out bytes.Buffer
	for b := make([]byte, 100); !strings.Contains(out.String(), "silent\nsilent\n"); {
		n, err := stdout.Read(b)
		require.NoError(t, err, out.String())
		out.Write(b[:n])
	}
	require.NoError(t, r.SetReadDeadline(time.Unix(1, 0)))
	unasked := <-said
	require.Empty(t, string(unasked))
	require.NoError(t, r.Close())
	_, err = stdin.Write([]byte{1})
	require.NoError(t, err)
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s%s", out.String(), rest)
	require.Contains(t, string(rest), "bar\nlines\n")
	t.Logf("F50: %d bytes unasked on the stderr of a Silent Fit that goes on with checkpoints; with its reader gone, a bar and lines: both ran on, exit status %d", len(unasked), cmd.ProcessState.ExitCode())
}
