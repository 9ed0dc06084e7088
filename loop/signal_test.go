//go:build unix

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// signalCount is the number of signals that TestF09_signalAtARandomMoment sends; the nightly form sends more.
var signalCount = 12

func TestF09_signalAtARandomMoment(t *testing.T) {
	codes := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143}
	longest, quickest := time.Duration(0), map[string]time.Duration{}
	for i := range signalCount {
		place, sent := signalPlaces[i%len(signalPlaces)], []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i/len(signalPlaces)%2]
		t.Run(fmt.Sprintf("%d %s in %s", i, sent, place), func(t *testing.T) {
			child := startSignalled(t, place)
			time.Sleep(rand.N(childWork)) // only the moment is random
			begin := time.Now()
			require.NoError(t, child.Process.Signal(sent))
			status := child.ends(t)
			took := time.Since(begin)
			longest = max(longest, took)
			if before, again := quickest[place]; !again || took < before {
				quickest[place] = took
			}
			require.True(t, status.Exited(), "it ended by itself")
			require.Equal(t, codes[sent], status.ExitStatus())

			state, steps := child.saved(t)
			require.Equal(t, state, steps, "saved is exactly what was counted")
			require.Positive(t, steps)
		})
	}
	require.Less(t, longest, 5*time.Second, "one step, one save, and a second; the rest is for busy machines")
	for place, took := range quickest { // a busy machine has not made each of them wait
		require.Less(t, took, 2*childWork+time.Second, place)
	}
	t.Logf("F09: %d signals, each with exit code 130 or 143 and a save at the exact step; at most %v until the exit, of a step, a save and 1 s allowed",
		signalCount, longest.Round(time.Millisecond))
}

// A lost terminal saves as a SIGTERM does. Under nohup, which ignores the signal, the run continues.
func TestWithSignals_ofALostTerminal(t *testing.T) {
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup, and in a second run in this process
		child := startSignalled(t, "a save")
		require.NoError(t, child.Process.Signal(syscall.SIGHUP))
		status := child.ends(t)
		require.True(t, status.Exited())
		require.Equal(t, 129, status.ExitStatus())
		state, steps := child.saved(t)
		require.Equal(t, state, steps)
	}
	signal.Ignore(syscall.SIGHUP) // which a child inherits
	defer signal.Reset(syscall.SIGHUP)
	child := startSignalled(t, "a save")
	require.NoError(t, child.Process.Signal(syscall.SIGHUP))
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 143, child.ends(t).ExitStatus(), "the first signal was ignored")
}

// A signal that comes while a finished run is at its last save has nothing to cut short: the save is made, the code is
// 0.
func TestF09_signalInTheLastSaveOfAFinishedRun(t *testing.T) {
	child := startSignalled(t, "the end")
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	status := child.ends(t)
	require.True(t, status.Exited())
	require.Equal(t, 0, status.ExitStatus())
	state, steps := child.saved(t)
	require.Equal(t, []int{3, 3}, []int{state, steps})
}

func TestF09_secondSignalEndsTheProcessAtOnce(t *testing.T) {
	longest := time.Duration(0)
	for _, sent := range [][2]syscall.Signal{{syscall.SIGINT, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGINT, syscall.SIGTERM}} {
		child := startSignalled(t, "hangs")
		require.NoError(t, child.Process.Signal(sent[0]))
		child.says(t, "cancelled")
		begin := time.Now()
		require.NoError(t, child.Process.Signal(sent[1]))
		status := child.ends(t)
		longest = max(longest, time.Since(begin))
		require.True(t, status.Signaled())
		require.Equal(t, sent[1], status.Signal())
	}
	require.Less(t, longest, 2*time.Second)
	t.Logf("F09: the second signal ended a hanging step after at most %v, of 100 ms allowed", longest.Round(time.Millisecond))
}

// Two signals so close together that the second may come while the first is being caught.
func TestF09_twoSignalsAtOnce(t *testing.T) {
	for range signalCount {
		child := startSignalled(t, "hangs")
		require.NoError(t, child.Process.Signal(syscall.SIGINT))
		require.NoError(t, child.Process.Signal(syscall.SIGTERM))
		require.True(t, child.ends(t).Signaled())
	}
	t.Logf("F09: %d pairs of signals, 0 lost", signalCount)
}

func TestWithSignals_afterwardsSignalsAreNobodys(t *testing.T) {
	for _, place := range []string{"stopped", "parent cancelled"} {
		t.Run(place, func(t *testing.T) {
			child := startSignalled(t, place)
			require.NoError(t, child.Process.Signal(syscall.SIGTERM))
			status := child.ends(t)
			require.True(t, status.Signaled())
			require.Equal(t, syscall.SIGTERM, status.Signal())
		})
	}
}

// Earlier listeners get each signal, before, during and after a run that listens too.
func TestWithSignals_leavesOthersAlone(t *testing.T) {
	own := make(chan os.Signal, 10)
	signal.Notify(own, syscall.SIGTERM)
	defer signal.Stop(own)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	send := func() {
		require.NoError(t, self.Signal(syscall.SIGTERM))
		require.Equal(t, syscall.SIGTERM, <-own)
	}

	send()
	ctx, stop := loop.WithSignals(t.Context())
	send()
	<-ctx.Done()
	var signalled *loop.SignalError
	require.ErrorAs(t, context.Cause(ctx), &signalled)
	require.Equal(t, syscall.SIGTERM, signalled.Signal)
	require.EqualError(t, signalled, "terminated")
	send() // the second one is not caught
	stop()
	stop() // twice is as good as once
	send()
}

func TestWithSignals_endsForOtherReasons(t *testing.T) {
	cause := errors.New("the deadline of the whole program")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, stop := loop.WithSignals(parent)
	cancel(cause)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), cause)
	stop()

	ctx, stop = loop.WithSignals(t.Context())
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	require.NoError(t, t.Context().Err())
}

func TestExitCode(t *testing.T) {
	interrupt := &loop.SignalError{Signal: syscall.SIGINT}
	for _, row := range []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, 0},
		{"an error", errors.New("boom"), 1},
		{"cancelled by hand", context.Canceled, 1},
		{"interrupted", fmt.Errorf("loop: step 3: cancelled: %w", interrupt), 130},
		{"interrupted, and the end failed", errors.Join(fmt.Errorf("loop: %w", interrupt), errors.New("disk full")), 130},
		{"terminated", &loop.SignalError{Signal: syscall.SIGTERM}, 143},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, loop.ExitCode(row.err)) })
	}
}

const exitChild = "LAZO_LOOP_TEST_EXIT"

// TestExitChild is the process that Exit ends; run for itself it does nothing.
func TestExitChild(*testing.T) {
	switch os.Getenv(exitChild) {
	case "well":
		loop.Exit(nil)
		os.Exit(7) // it came here
	case "failed":
		loop.Exit(errors.New("no such file"))
	case "interrupted":
		loop.Exit(fmt.Errorf("loop: cancelled: %w", &loop.SignalError{Signal: syscall.SIGINT}))
	}
}

// A program that Exit ends prints the reason in one line, and its exit code is that of the error.
func TestExit(t *testing.T) {
	for place, want := range map[string]struct {
		code int
		line string
	}{"well": {7, `^$`}, "failed": {1, `^\S+ \S+ no such file\n$`}, "interrupted": {130, `^\S+ \S+ loop: cancelled: interrupt\n$`}} {
		t.Run(place, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestExitChild$")
			child.Env = append(os.Environ(), exitChild+"="+place)
			var stderr strings.Builder
			child.Stderr = &stderr
			require.Error(t, child.Run())
			require.Equal(t, want.code, child.ProcessState.ExitCode())
			require.Regexp(t, want.line, stderr.String())
		})
	}
}
