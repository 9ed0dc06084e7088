//go:build unix

package loop_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

const (
	childPlace = "LAZO_LOOP_TEST_SIGNAL_PLACE"
	childSaves = "LAZO_LOOP_TEST_SIGNAL_FILE"
	// A step, an inner step and a save of the child take this long each, and it heeds no context meanwhile.
	childWork = 30 * time.Millisecond
)

// signalPlaces are the activities of the child when the signal arrives.
var signalPlaces = []string{"a step that heeds", "a step that is deaf", "an evaluation", "a save", "the first step", "the data"}

// TestSignalChild is the process that gets the signals; run for itself it does nothing.
func TestSignalChild(t *testing.T) {
	place := os.Getenv(childPlace)
	if place == "" {
		return
	}
	ctx, stop := loop.WithSignals(context.Background())
	switch place {
	case "stopped":
		stop()
	case "parent cancelled":
		parent, cancel := context.WithCancel(context.Background())
		stop()
		ctx, stop = loop.WithSignals(parent)
		cancel()
	}
	enter := func(where string) {
		if where == place {
			fmt.Println("ready")
		}
		if where == place && where == "the end" {
			<-ctx.Done() // after the last save a signal would find no run, and end the process
		}
	}
	switch place {
	case "stopped", "parent cancelled":
		enter(place)
		hang()
	case "hangs":
		context.AfterFunc(ctx, func() { fmt.Println("cancelled") })
	}
	work := func(where string) func(context.Context, int, int) (int, loop.Logs, error) {
		return func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			enter(where)
			time.Sleep(childWork)
			return s + 1, loop.Logs{}, nil
		}
	}
	first := true
	train := func(ctx context.Context, s, n int) (int, loop.Logs, error) {
		switch {
		case first:
			first = false
			return work("the first step")(ctx, s, n)
		case place == "hangs":
			enter("hangs")
			hang()
		case place == "a step that heeds":
			enter(place)
			<-ctx.Done()
			return s, loop.Logs{}, context.Cause(ctx)
		}
		return work("a step that is deaf")(ctx, s, n)
	}
	test := loop.Evaluation[int, int]{Name: "test", Data: ten, Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(work("an evaluation"))))}
	saver := attend("saver", loop.EachStep, func() loop.Attendant { return saver{os.Getenv(childSaves), enter} })
	source := forever
	if place == "the data" {
		source = func(yield func(int, error) bool) {
			for range 4 {
				if !yield(1, nil) {
					return
				}
			}
			enter(place)
			hang()
		}
	}
	until := loop.Until(loop.Steps(1 << 40))
	if place == "the end" {
		until = loop.Until(loop.Steps(3))
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(train)), test.On(loop.Every(loop.Steps(3)))).Run(ctx, 0, loop.Data[int](source), until, saver)
	stop()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(loop.ExitCode(err))
}

// hang waits without end, but leaves the runtime something to wait for, so that it reports no deadlock.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// saver writes the state and the steps of a report to a file.
type saver struct {
	path  string
	enter func(where string)
}

func (s saver) Watch(_ context.Context, r loop.Report) error {
	s.enter("a save")
	return s.save(r)
}

func (s saver) End(_ context.Context, e loop.Ending) error {
	s.enter("the end")
	if err := s.save(e.Report); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

func (s saver) save(r loop.Report) error {
	time.Sleep(childWork)
	return os.WriteFile(s.path+".new", fmt.Appendf(nil, "state %d, steps %d", r.State(), r.Elapsed.Steps), 0o600)
}

// signalled is a child process that reports its activity.
type signalled struct {
	*exec.Cmd
	out  *bufio.Reader
	file string
}

func startSignalled(t *testing.T, place string) signalled {
	c := signalled{Cmd: exec.Command(os.Args[0], "-test.run=^TestSignalChild$"), file: filepath.Join(t.TempDir(), "last")}
	c.Env = append(os.Environ(), childPlace+"="+place, childSaves+"="+c.file)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	c.out = bufio.NewReader(out)
	c.says(t, "ready")
	return c
}

func (c signalled) says(t *testing.T, want string) {
	for {
		line, err := c.out.ReadString('\n')
		require.NoError(t, err, "the child ended before it said %q", want)
		if line == want+"\n" {
			return
		}
	}
}

// ends waits until the child has ended.
func (c signalled) ends(t *testing.T) syscall.WaitStatus {
	_, err := io.Copy(io.Discard, c.out)
	require.NoError(t, err)
	_ = c.Wait() // the status has the result
	return c.ProcessState.Sys().(syscall.WaitStatus)
}

// saved are the state and the steps in the file that the child's attendant finished at its end.
func (c signalled) saved(t *testing.T) (state, steps int) {
	text, err := os.ReadFile(c.file)
	require.NoError(t, err)
	_, err = fmt.Sscanf(string(text), "state %d, steps %d", &state, &steps)
	require.NoError(t, err)
	return state, steps
}
