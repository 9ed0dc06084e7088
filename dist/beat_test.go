package dist

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// S53: ranks wait for one for 30 s of a deadline of a minute, and then go on. Rank 0 reports that one once, and the job
// continues; when it comes to a minute, the job ends.
func TestS53_aLateRankIsReportedFirst(t *testing.T) {
	defer func() { exit = os.Exit }()
	synctest.Test(t, func(t *testing.T) {
		codes := make(chan int, 1)
		exit = func(code int) { codes <- code }
		j := three()
		j.deadline, j.activity.start = defaultDeadline, time.Now()
		var failure *Failure
		j.onFailure = func(f *Failure) { failure = f }
		h := &hub{j: j, links: make([]*link, 3), views: make([]view, 3)}
		for r := range h.views {
			h.views[r].seen = time.Now()
		}
		var said lockedText
		go h.look(&said)
		wait := func(d time.Duration) { // of ranks 0 and 1 for rank 2
			j.activity.enter("Agree of 1 words", 0)
			defer j.activity.leave()
			for begin := time.Now(); time.Since(begin) < d; time.Sleep(beatEvery) {
				h.take(1, message{Kind: kindBeat, Beat: &beat{Step: 7, Calls: j.Calls(), Call: "Agree of 1 words", CallFor: time.Since(begin)}})
				h.take(2, message{Kind: kindBeat, Beat: &beat{Step: 6, Doing: "data", DoingFor: time.Since(begin), Calls: j.Calls() - 1}})
			}
		}
		wait(patient - second)
		require.Empty(t, said.String())
		wait(patient + 20*second)
		require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
		require.Contains(t, said.String(), "lazo: rank 2 (host h2, pid 102) is stuck at step 6, in data for 10")
		require.Contains(t, said.String(), ". the job of 3 ranks ends if this lasts for 1m0s ($LAZO_DEADLINE)\n")
		require.Empty(t, codes)
		wait(second)
		require.Empty(t, codes)
		wait(2 * time.Minute)
		require.Equal(t, ExitStuck, <-codes)
		require.ErrorContains(t, failure, "the job of 3 ranks has ended: rank 2 (host h2, pid 102) is stuck")
		require.ErrorContains(t, failure, "longer than the deadline of 1m0s")
	})
}

// The stack of a stuck rank shows the loop first and no goroutine of lazo's own.
func TestPick(t *testing.T) {
	dump := `goroutine 1 [chan receive]:
main.main()
	/u/main.go:20 +0x1d

goroutine 7 [select]:
internal/poll.runtime_pollWait(0x1, 0x72)
	/go/src/runtime/netpoll.go:351 +0x85
github.com/lazo-ml/lazo/dist.read({0x1, 0x2})
	/l/dist/frame.go:90 +0x1d
created by github.com/lazo-ml/lazo/dist.(*spoke).watch in goroutine 1
	/l/dist/control.go:400 +0x1

goroutine 9 [IO wait, 2 minutes]:
os.(*File).Read(0xc000, {0x1})
	/go/src/os/file.go:10 +0x5
example.org/mine/source.(*Reader).next(0xc00)
	/u/source/reader.go:33 +0x1d

goroutine 8 [chan receive]:
github.com/lazo-ml/lazo/data.Prefetch.func1()
	/l/data/prefetch.go:5 +0x1d
github.com/lazo-ml/lazo/loop.(*run).turns(...)
	/l/loop/run.go:70
`
	require.Equal(t, `  goroutine 8 [chan receive]:
    github.com/lazo-ml/lazo/data.Prefetch.func1()
      /l/data/prefetch.go:5
    github.com/lazo-ml/lazo/loop.(*run).turns
      /l/loop/run.go:70
  goroutine 1 [chan receive]:
    main.main()
      /u/main.go:20
  goroutine 9 [IO wait, 2 minutes]:
    example.org/mine/source.(*Reader).next
      /u/source/reader.go:33`, pick(dump))
	require.Contains(t, stacks(), "beat_test.go", "this one")
}
