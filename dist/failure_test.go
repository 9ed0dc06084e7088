package dist

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that waits for a rank that was never started reports it after 10 s, then each minute.
func TestAnnounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said lockedText
		stop := three().announceTo(&said, func() string { return "for rank 2 to come" })
		lines := func(after time.Duration) int {
			<-time.After(after)
			synctest.Wait()
			return strings.Count(said.String(), "\n")
		}
		require.Zero(t, lines(9*second))
		require.Equal(t, 1, lines(2*second))
		require.Regexp(t, `^lazo: rank 0 of 3 \(host .*, pid \d+\) has waited for 10s, since \d\d:\d\d:\d\d: for rank 2 to come\n$`, said.String())
		require.Equal(t, 1, lines(58*second))
		require.Equal(t, 2, lines(2*second))
		stop()
		stop()
		require.Equal(t, 2, lines(time.Hour))
	})
}

// The function of OnFailure has the message in place of the standard error, and a limit.
func TestEnd_tells(t *testing.T) {
	defer func() { exit = os.Exit }()
	code := 0
	exit = func(c int) { code = c }
	var told *Failure
	j := &Job{onFailure: func(f *Failure) { told = f }}
	f := &Failure{Code: ExitStuck, Text: "why", Stack: "  where\n", Here: true}
	j.end(f)
	require.Same(t, f, told)
	require.Equal(t, ExitStuck, code)
	require.EqualError(t, told, "why\n  where")
	told = nil
	j.end(f)
	require.Nil(t, told, "once")
}

// TestS55_theFirstFailureIsSaid: rank 0 says why the job ends before it tells the others, whose end has a launcher end
// all processes; and its own failure, which comes meanwhile, does not end the process before that.
func TestS55_theFirstFailureIsSaid(t *testing.T) {
	defer func() { exit = os.Exit }()
	j := three()
	h := &hub{j: j, links: make([]*link, 3), views: make([]view, 3)}
	for r := 1; r < 3; r++ {
		h.links[r] = &link{done: make(chan struct{})} // has no reader, so rank 0 waits until its last messages are sent
		h.links[r].more.L = &h.links[r].mu
	}
	told := func() (n int) {
		for _, l := range h.links[1:] {
			l.mu.Lock()
			n += len(l.queue)
			l.mu.Unlock()
		}
		return n
	}
	j.hub = h
	events := make(chan string, 10)
	j.onFailure = func(f *Failure) {
		events <- fmt.Sprintf("%s; it is said here: %v; %d were told before", f.Text, f.Here, told())
	}
	exit = func(code int) {
		events <- fmt.Sprintf("exit %d; %d were told", code, told())
		runtime.Goexit()
	}
	var ranks sync.WaitGroup
	ranks.Go(func() { h.fail(&Failure{Code: ExitFailed, Rank: 1, Text: "rank 1 failed"}) })
	require.Eventually(t, func() bool { return told() == 2 }, 10*second, time.Millisecond)
	ranks.Go(func() { j.Fail(errors.New("rank 0 failed")) })
	ranks.Wait()
	require.Equal(t, "rank 1 failed; it is said here: true; 0 were told before", <-events)
	require.Equal(t, "exit 78; 2 were told", <-events)
	require.Empty(t, events)
}

// S55: a message that is not read delays the others' end by at most lastWords.
func TestS55_aFailureThatNobodyReads(t *testing.T) {
	defer func() { exit = os.Exit }()
	synctest.Test(t, func(t *testing.T) {
		codes := make(chan int, 1)
		exit = func(code int) { codes <- code }
		read := make(chan struct{})
		j := three()
		j.onFailure = func(*Failure) { <-read }
		h := &hub{j: j}
		begin := time.Now()
		h.fail(&Failure{Code: ExitFailed})
		require.Equal(t, ExitFailed, <-codes)
		require.Equal(t, lastWords, time.Since(begin)) // of the bubble's clock
		close(read)
	})
}
