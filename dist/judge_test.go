package dist

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func three() *Job {
	j := &Job{size: 3, deadline: 10 * time.Second}
	for r := range 3 {
		j.peers = append(j.peers, peer{Host: "h" + string(rune('0'+r)), PID: 100 + r})
	}
	return j
}

const second = time.Second

func TestJudge(t *testing.T) {
	now := time.Now()
	computes := func(step int64) beat { return beat{Step: step, Doing: "data", DoingFor: 20 * second} }
	exchanges := func(n uint64, wait time.Duration) beat {
		return beat{Step: int64(n), Begun: n, Waits: true, Kind: "all_reduce", Site: 3, ExchangeFor: wait}
	}
	calls := func(n uint64, wait time.Duration) beat {
		return beat{Step: int64(n), Calls: n, Call: "Agree of 2 words", CallFor: wait}
	}
	busy := func(left time.Duration) beat { return beat{Step: 5, Busy: "compile", BusyLeft: left, DoingFor: second} }
	for name, c := range map[string]struct {
		beats  [3]beat
		silent time.Duration // of rank 2
		left   bool          // rank 2 has
		nap    time.Duration // of this process, until a second ago
		pardon time.Duration // so long ago
		code   int
		rank   int
		says   string
		busy   bool
	}{
		"all compute":                  {beats: [3]beat{computes(5), computes(5), computes(4)}},
		"waits, not long":              {beats: [3]beat{exchanges(5, 9*second), exchanges(5, 9*second), computes(4)}},
		"one is behind":                {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), computes(4)}, code: ExitStuck, rank: 2, says: "rank 2 (host h2, pid 102) is stuck at step 4, in data for 20s. rank 0 (host h0, pid 100) waits for it at step 5, in all_reduce (collective 3 of its program, exchange 5 of the job) for 11s"},
		"two are":                      {beats: [3]beat{exchanges(5, 11*second), computes(4), computes(4)}, code: ExitStuck, rank: 1, says: "(and for ranks 2)"},
		"rank 0 is":                    {beats: [3]beat{computes(4), calls(5, 11*second), calls(5, 11*second)}, code: ExitStuck, says: "rank 0 (host h0, pid 100) is stuck"},
		"a phase":                      {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), busy(second)}, busy: true},
		"waits in the store":           {beats: [3]beat{calls(5, 11*second), calls(5, 11*second), {Step: 4, Doing: "data", DoingFor: 20 * second, Get: `Store.Get of "address"`, GetFor: 12 * second, Note: "forgot something"}}, code: ExitStuck, rank: 2, says: `rank 2 (host h2, pid 102) is stuck at step 4, in Store.Get of "address" for 12s (forgot something). rank 0`},
		"a phase is over":              {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), busy(0)}, code: ExitStuck, rank: 2, says: `the limit that it set for "compile" has passed`},
		"it was, a second ago":         {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), busy(0)}, pardon: second},
		"one behind what others do":    {beats: [3]beat{exchanges(5, 11*second), calls(1, 11*second), computes(4)}, code: ExitStuck, rank: 2, says: "is stuck"},
		"different places":             {beats: [3]beat{exchanges(5, 11*second), {Step: 7, Begun: 4, Calls: 1, Call: "Close", CallFor: 11 * second, CallLimit: 60 * second}, exchanges(5, 11*second)}, code: ExitDisagree, rank: 1, says: "do not run the same program: rank 0 (host h0, pid 100) waits at step 5, in all_reduce"},
		"Close waits longer":           {beats: [3]beat{computes(5), {Calls: 1, Call: "Close", CallFor: 50 * second, CallLimit: 60 * second}, computes(5)}},
		"but not for ever":             {beats: [3]beat{computes(5), {Calls: 1, Call: "Close", CallFor: 61 * second, CallLimit: 60 * second}, computes(5)}, code: ExitStuck, rank: 0, says: "waits for it at step 0, in Close"},
		"all are in it":                {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), exchanges(5, 11*second)}, code: ExitLost, says: "no rank is late: the network link to it or to another rank, or an MPI library, does not respond"},
		"a cut link, one computes":     {beats: [3]beat{{Step: 5, Calls: 5}, calls(5, 11*second), {Step: 5, Calls: 5}}, code: ExitLost, rank: 1, says: "for a result that rank 0 (host h0, pid 100) has: the network link to it does not respond"},
		"a cut link, the first waits":  {beats: [3]beat{calls(4, 12*second), calls(5, 11*second), calls(5, 11*second)}, code: ExitLost, rank: 0, says: "for a result that rank 1 (host h1, pid 101) has"},
		"a cut link in an exchange":    {beats: [3]beat{exchanges(6, 11*second), exchanges(5, 12*second), exchanges(6, 11*second)}, code: ExitLost, rank: 1, says: "for a result that rank 0 (host h0, pid 100) has"},
		"a cut link, then a program":   {beats: [3]beat{{Calls: 7, Begun: 3, Waits: true, ExchangeFor: 11 * second}, {Calls: 7, Begun: 3, Waits: true, ExchangeFor: 11 * second}, {Calls: 7, Begun: 2, Call: "the comparison of run 3", CallFor: 11 * second}}, code: ExitLost, rank: 2, says: "waits at step 0, in the comparison of run 3 for 11s for a result that rank 0 (host h0, pid 100) has"},
		"a cut link in Close":          {beats: [3]beat{{Calls: 5, Call: "Close", CallFor: 11 * second, CallLimit: 60 * second}, {Calls: 5}, {Calls: 5}}, left: true, code: ExitLost, says: "in Close for 11s for a result that rank 1 (host h1, pid 101) has"},
		"silent":                       {beats: [3]beat{computes(5), computes(5), computes(4)}, silent: 11 * second, code: ExitLost, rank: 2, says: "rank 2 (host h2, pid 102) gives no sign of life for 11s"},
		"silent since it waited":       {beats: [3]beat{{Calls: 5}, {Calls: 5}, calls(5, 9*second)}, silent: 2 * second},
		"silent in what others wait":   {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), exchanges(5, second)}, silent: 9 * second},
		"silent in an earlier call":    {beats: [3]beat{calls(5, 11*second), calls(5, 11*second), calls(4, second)}, silent: 9 * second},
		"in an earlier call":           {beats: [3]beat{calls(5, 11*second), calls(5, 11*second), calls(4, 12*second)}, code: ExitLost, rank: 2, says: "rank 2 (host h2, pid 102) waits at step 4, in Agree of 2 words for 12s for a result that rank 0 (host h0, pid 100) has: the network link to it"},
		"silent, as this process was":  {beats: [3]beat{computes(5), computes(5), computes(4)}, silent: 11 * second, nap: 10 * second},
		"silent, as this one starves":  {beats: [3]beat{computes(5), computes(5), computes(4)}, silent: 13 * second, nap: 2 * second, code: ExitLost, rank: 2, says: "gives no sign of life for 11s"},
		"behind, as this process was":  {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), computes(4)}, nap: 2 * second},
		"behind, as this one starves":  {beats: [3]beat{exchanges(5, 13*second), exchanges(5, 13*second), computes(4)}, nap: 2 * second, code: ExitStuck, rank: 2, says: "is stuck"},
		"silent in a phase":            {beats: [3]beat{exchanges(5, 11*second), computes(5), busy(time.Hour)}, silent: 11 * second, pardon: second, code: ExitLost, rank: 2, says: "gives no sign of life for 11s"},
		"silent beside a phase":        {beats: [3]beat{exchanges(5, 11*second), busy(time.Hour), computes(5)}, silent: 11 * second, pardon: second, code: ExitLost, rank: 2, says: "gives no sign of life for 11s"},
		"silent, and left":             {beats: [3]beat{computes(5), computes(5), computes(4)}, silent: 11 * second, left: true},
		"what it said last grows old":  {beats: [3]beat{computes(4), computes(4), exchanges(5, 2*second)}, silent: 9 * second, code: ExitStuck, rank: 0, says: "for 11s (and for ranks 1), longer than the deadline"},
		"a phase that it said, ran on": {beats: [3]beat{exchanges(5, 11*second), exchanges(5, 11*second), busy(500 * time.Millisecond)}, silent: 900 * time.Millisecond, code: ExitStuck, rank: 2, says: "is stuck"},
		"behind, and silent":           {beats: [3]beat{exchanges(5, 11*second), computes(5), computes(4)}, silent: 9 * second, code: ExitLost, rank: 2, says: "no sign of life for 9s"},
	} {
		t.Run(name, func(t *testing.T) {
			var views []view
			for r := range 3 {
				views = append(views, view{beat: c.beats[r], seen: now})
			}
			views[2].seen, views[2].left = now.Add(-c.silent), c.left
			var awake wakefulness
			awake.look(now.Add(-second - c.nap))
			awake.look(now.Add(-second))
			pardon := now.Add(-time.Hour)
			if c.pardon > 0 {
				pardon = now.Add(-c.pardon)
			}
			f, busy := three().judge(views, now, &awake, pardon, three().deadline)
			require.Equal(t, c.busy, busy)
			if c.code == 0 {
				require.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			require.Equal(t, c.code, f.Code, f)
			require.Equal(t, c.rank, f.Rank, f)
			require.Contains(t, f.Error(), c.says)
		})
	}
	// The program of rank 1 ends by an error, since a second or since two minutes.
	for _, c := range []struct {
		zero, one beat
		since     time.Duration
		fails     bool
	}{
		{computes(5), computes(5), second, false},
		{calls(5, second), beat{Calls: 4}, second, true},
		{calls(5, second), beat{Calls: 5}, second, false}, // what it says is older than that rank 1 came there
		{exchanges(5, second), beat{Begun: 4}, second, true},
		{exchanges(5, second), beat{Begun: 5}, second, false},
		{computes(5), computes(5), 2 * time.Minute, true},
		{calls(5, 11*second), beat{Calls: 5}, second, true}, // rank 1 failed in it
	} {
		views := []view{{beat: c.zero, seen: now}, {beat: c.one, seen: now, error: "no such file", leaving: now.Add(-c.since)}, {beat: beat{Calls: 5, Begun: 5}, seen: now}}
		f, _ := three().judge(views, now, new(wakefulness), now.Add(-time.Hour), three().deadline)
		require.Equal(t, c.fails, f != nil, c)
		if c.fails {
			require.Equal(t, ExitFailed, f.Code)
			require.ErrorContains(t, f, "rank 1 (host h1, pid 101) failed at step ")
			require.ErrorContains(t, f, ": no such file")
		}
	}
	large := exchanges(5, 11*second)
	large.Bytes = 100e6 // ten seconds more
	for _, other := range []beat{large, exchanges(6, 11*second)} {
		f, _ := three().judge([]view{{beat: large, seen: now}, {beat: other, seen: now}, {beat: other, seen: now}}, now, new(wakefulness), now.Add(-time.Hour), three().deadline)
		require.Nil(t, f, "a large exchange may be at work")
	}
}

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

// A process that was stopped for the deadline says nothing of the others, who have given it up.
func TestWakefulness(t *testing.T) {
	var w wakefulness
	now := time.Now()
	w.look(now)
	w.look(now.Add(second))
	require.False(t, w.givenUp(now.Add(2*second), 10*second))
	require.True(t, w.givenUp(now.Add(9*second), 10*second), "it has not looked since")
	require.Equal(t, now, w.excuse(now))
	w.look(now.Add(9 * second))
	require.True(t, w.givenUp(now.Add(9*second), 10*second))
	w.look(now.Add(9500 * time.Millisecond))
	require.False(t, w.givenUp(now.Add(10500*time.Millisecond), 10*second))
	w.look(now.Add(12 * second))
	require.False(t, w.givenUp(now.Add(12*second), 10*second), "not for so long")
	require.Equal(t, now.Add(10500*time.Millisecond), w.excuse(now), "both naps")
	require.Equal(t, now.Add(12*second), w.excuse(now.Add(10*second)), "the rest of one")
	require.Equal(t, now.Add(12*second), w.excuse(now.Add(12*second)))
	for i := range 2 * mostNaps {
		w.look(now.Add(time.Duration(100+2*i) * second))
	}
	require.Len(t, w.naps, mostNaps)
}

func TestPeers_onHosts(t *testing.T) {
	host := func(name string) *hello { return &hello{Host: name, LocalRank: -1, LocalSize: -1} }
	got := peers([]*hello{host("a"), host("b"), host("a")})
	require.Equal(t, []peer{{Host: "a", LocalSize: 2}, {Host: "b", LocalSize: 1}, {Host: "a", LocalRank: 1, LocalSize: 2}}, got)
}

func TestFind(t *testing.T) {
	env := func(text string) func(string) string {
		values := map[string]string{}
		for _, pair := range strings.Fields(text) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		if strings.Contains(text, "=") && values[variableSecret] == "" {
			values[variableSecret] = secret
		}
		return func(name string) string { return values[name] }
	}
	for text, want := range map[string]place{
		"": {size: 1, localSize: 1},
		"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1":                                      {size: 1, localSize: 1},                                                                             // a batch script
		"LAZO_RANK=1 LAZO_SIZE=2 LAZO_COORDINATOR=localhost:1":                              {launcher: "LAZO_RANK", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "127.0.0.1:1"}, // another process may have [::1]
		"LAZO_RANK=1 LAZO_SIZE=2 LAZO_COORDINATOR=h:1 LAZO_JOB=x LAZO_ATTEMPT=3 PMI_RANK=0": {launcher: "LAZO_RANK", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "h:1", job: "x", attempt: "3"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=n PMIX_RANK=1 SLURM_STEP_NUM_TASKS=1 LAZO_DEADLINE=3s": {launcher: "Open MPI", rank: 1, size: 4, localRank: 0, localSize: 2, byMPI: true, kind: "mpi", job: "n", deadline: 3 * second},
		"PMI_RANK=2 PMI_SIZE=3 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=2":                                                       {launcher: "PMI (MPICH)", rank: 2, size: 3, localRank: -1, localSize: -1, byMPI: true, kind: "mpich"},
		"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_JOB_ID=70 SLURM_STEP_ID=2 PMIX_RANK=3":                                 {launcher: "Slurm", rank: 3, size: 4, localRank: -1, localSize: -1, byMPI: true, kind: "mpi", job: "70"},
		"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_JOB_ID=70 SLURM_STEP_ID=2 SLURM_STEP_NODELIST=n[03-05,9],x":            {launcher: "Slurm", rank: 3, size: 4, localRank: -1, localSize: -1, coordinator: "n03:62122", job: "70"},
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_JOB_ID=70 SLURM_STEP_NODELIST=login,n[1-2]":                            {launcher: "Slurm", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "login:62120", job: "70"},
		"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=9 TORCHELASTIC_USE_AGENT_STORE=True": {launcher: "torchrun", rank: 1, size: 2, localRank: 1, localSize: 2, coordinator: "127.0.0.1:10"}, // on one host
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_JOB_ID=70 SLURM_STEP_NODELIST=n SLURM_STEP_NUM_NODES=1":                {launcher: "Slurm", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "127.0.0.1:62120", job: "70"},
		"RANK=1 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=9":                                                                   {launcher: "torchrun", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "m:9"},
		"COORDINATOR_ADDRESS=c COORDINATOR_PORT=6 NUM_PROCESSES=2 PROCESS_ID=0":                                             {launcher: "Kubeflow JAXJob", size: 2, localRank: -1, localSize: -1, coordinator: "c:6"},
		"JOB_COMPLETION_INDEX=1 LAZO_SIZE=2 LAZO_COORDINATOR=j-0.s:1":                                                       {launcher: "Kubernetes Indexed Job", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "j-0.s:1"},
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 LAZO_MPI=none LAZO_COORDINATOR=h:1":                                  {launcher: "Open MPI", size: 2, localRank: -1, localSize: -1, coordinator: "h:1", library: "none"},
	} {
		if want.coordinator != "" {
			want.secret = secret // others have MPI, which distributes one
		}
		got, err := find(env(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"LAZO_RANK=1":                                "lacks $LAZO_SIZE",
		"LAZO_SIZE=2":                                "set $LAZO_RANK too",
		"LAZO_COORDINATOR=h:1":                       "set $LAZO_RANK too",
		"LAZO_RANK=2 LAZO_SIZE=2":                    "rank 2 ($LAZO_RANK) of 2 ($LAZO_SIZE)",
		"LAZO_RANK=x LAZO_SIZE=2":                    `a number of at least 0 in $LAZO_RANK (it is "x")`,
		"LAZO_RANK=0 LAZO_SIZE=2":                    "set $LAZO_COORDINATOR",
		"OMPI_COMM_WORLD_RANK=0":                     "Open MPI started this process, and it lacks $OMPI_COMM_WORLD_SIZE",
		"WORLD_SIZE=2":                               "lacks $RANK",
		"WORLD_SIZE=2 RANK=0":                        "MASTER_ADDR or MASTER_PORT is missing: set $LAZO_COORDINATOR",
		"JOB_COMPLETION_INDEX=0":                     "lacks $LAZO_SIZE",
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0":      "SLURM_STEP_NODELIST or SLURM_JOB_ID is missing",
		"COORDINATOR_ADDRESS=c NUM_PROCESSES=2":      "lacks $PROCESS_ID",
		"LAZO_DEADLINE=10":                           `$LAZO_DEADLINE is "10", expected a time such as 30s`,
		"LAZO_DEADLINE=-1s LAZO_RANK=0":              "expected a time",
		"PMI_RANK=0 PMI_SIZE=2 LAZO_MPI=none A=b":    "the address of rank 0 is unknown",
		"LAZO_RANK=0 LAZO_SIZE=2 LAZO_COORDINATOR=h": "missing port in address: expected host:port",
		"LAZO_RANK=0 LAZO_SIZE=2 LAZO_COORDINATOR=h:1 LAZO_SECRET=fifteen-bytes-": "$LAZO_SECRET has 14 bytes: set it on all ranks to the same random text of at least 16 bytes",
	} {
		_, err := find(env(text))
		require.ErrorContains(t, err, says, text)
	}
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
	require.Contains(t, stacks(), "judge_test.go", "this one")
}

// lockedText is written by one goroutine and read by another.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

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

// A rank that hears nothing of rank 0 reports it to rank 0 as its last message: a link may return in one direction
// first.
func TestSpoke_reportsSilence(t *testing.T) {
	defer func() { exit = os.Exit }()
	synctest.Test(t, func(t *testing.T) {
		codes := make(chan int, 1)
		exit = func(c int) { codes <- c }
		here, there := net.Pipe()
		j := three()
		j.rank = 2
		s := &spoke{j: j, link: newLink(here, time.Minute, func(error) {})}
		go s.silent(11 * second)
		m, err := read(there, mostMessage)
		require.NoError(t, err)
		require.Equal(t, kindFail, m.Kind)
		require.Equal(t, 2, m.Failure.Rank)
		require.Contains(t, m.Failure.Text, "rank 2 (host h2, pid 102) has received nothing from rank 0 for 11s: the link between them was down. It was at step 0")
		require.Equal(t, ExitLost, <-codes)
	})
}

// A message that cannot be read or sent is not a death.
func TestLost_byAMessage(t *testing.T) {
	defer func() { exit = os.Exit }()
	framed := func(body string) []byte { return append([]byte{0, 0, 0, byte(len(body))}, body...) }
	_, tooLong := frame(message{Kind: kindCall, Call: "AllGather", Data: make([]byte, 30)}, 60)
	require.Error(t, tooLong)
	for name, c := range map[string]struct {
		sent []byte
		code int
		says string
	}{
		"a length":  {[]byte{0xff, 0, 0, 0}, ExitLost, "a message from RANK could not be read: expected at most 1073741824 bytes, got 4278190080: the network or a host changed it. "},
		"its JSON":  {framed(`{"Kind":"bea`), ExitLost, `a message from RANK could not be read: expected JSON, got "{\"Kind\":\"bea" (unexpected end of JSON input): `},
		"its kind":  {framed(`{"Kind":"bebt"}`), ExitLost, `a message from RANK could not be read: expected a kind of message, got "bebt": `},
		"too large": {nil, ExitFailed, `a message to RANK ("AllGather") could not be sent: expected at most 60 bytes, got 8`},
	} {
		t.Run("of rank 1: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codes, failures := make(chan int, 1), make(chan *Failure, 1)
				exit = func(code int) { codes <- code }
				here, there := net.Pipe()
				defer there.Close()
				defer here.Close()
				j := three()
				j.onFailure = func(f *Failure) { failures <- f }
				h := &hub{j: j, links: make([]*link, 3), views: make([]view, 3)}
				h.links[1] = newLink(here, time.Minute, func(err error) { h.lost(1, err) })
				h.views[1] = view{beat: beat{Step: 7}, seen: time.Now()}
				h.watch()
				go func() { _, _ = io.Copy(io.Discard, there) }()
				if c.sent == nil {
					go h.lost(1, tooLong)
				} else {
					_, err := there.Write(c.sent)
					require.NoError(t, err)
				}
				require.Equal(t, c.code, <-codes)
				f := <-failures
				require.True(t, f.Here)
				require.Contains(t, f.Text, strings.ReplaceAll(c.says, "RANK", "rank 1 (host h1, pid 101)"))
				require.Contains(t, f.Text, "Its last heartbeat was at step 7")
				require.NotContains(t, f.Text, "died")
				<-time.After(second) // until look has ended
			})
		})
		t.Run("of rank 0: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codes := make(chan int, 1)
				exit = func(code int) { codes <- code }
				here, there := net.Pipe()
				defer there.Close()
				defer here.Close()
				j := three()
				j.rank = 1
				s := &spoke{j: j, seen: time.Now()}
				s.link = newLink(here, time.Minute, s.lost)
				s.watch()
				reported := make(chan *Failure, 1)
				go func() {
					for m, err := read(there, mostMessage); err == nil; m, err = read(there, mostMessage) {
						if m.Kind == kindFail {
							reported <- m.Failure
						}
					}
				}()
				if c.sent == nil {
					go s.lost(tooLong)
				} else {
					_, err := there.Write(c.sent)
					require.NoError(t, err)
				}
				f := <-reported
				require.Equal(t, c.code, <-codes)
				require.Equal(t, c.code, f.Code)
				require.Contains(t, f.Text, strings.ReplaceAll(c.says, "RANK", "rank 0 (host h0, pid 100)"))
				s.mu.Lock()
				s.left = true
				s.mu.Unlock()
				<-time.After(second) // until its heartbeats have ended
			})
		})
	}
}

// A process that is stopped as soon as it has joined knows it when it wakes.
func TestWatch_stoppedAtOnce(t *testing.T) {
	h := &hub{j: three(), over: true, links: make([]*link, 3), views: make([]view, 3)}
	h.watch()
	here, there := net.Pipe()
	s := &spoke{j: h.j, left: true, link: newLink(here, time.Minute, func(error) {})}
	s.watch()
	later := time.Now().Add(11 * second)
	s.mu.Lock()
	require.True(t, s.awake.givenUp(later, 10*second))
	s.mu.Unlock()
	h.mu.Lock()
	require.True(t, h.awake.givenUp(later, 10*second))
	h.mu.Unlock()
	require.NoError(t, there.Close())
}

// A rank 0 that was stopped for the deadline does not say again what the others have said of it.
func TestHub_takesItsOwnSilence(t *testing.T) {
	defer func() { exit = os.Exit }()
	for _, slept := range []time.Duration{0, 11 * second} {
		synctest.Test(t, func(t *testing.T) {
			codes, failures := make(chan int, 1), make(chan *Failure, 1)
			exit = func(c int) { codes <- c }
			j := three()
			j.deadline, j.onFailure = 10*second, func(f *Failure) { failures <- f }
			h := &hub{j: j, links: make([]*link, 3), views: make([]view, 3)}
			now := time.Now()
			h.awake.look(now.Add(-slept))
			h.awake.look(now)
			h.take(2, message{Kind: kindFail, Failure: j.failure(ExitLost, 2, beat{}, 0, "rank 2 has received nothing from rank 0")})
			require.Equal(t, ExitLost, <-codes)
			require.Equal(t, slept == 0, (<-failures).Here)
		})
	}
}

// Rank 0 leaves after the others, and reports one that does not receive the result of Close.
func TestHub_closesLast(t *testing.T) {
	defer func() { exit = os.Exit }()
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			codes, failures := make(chan int, 1), make(chan *Failure, 1)
			exit = func(c int) { codes <- c }
			j := three()
			j.activity.start = time.Now()
			j.onFailure = func(f *Failure) { failures <- f }
			h := &hub{j: j, links: make([]*link, 3), views: make([]view, 3), byes: make(chan struct{}, 3)}
			for r := range h.views {
				h.views[r].seen = time.Now()
			}
			go h.look(io.Discard)
			j.activity.enter("Close", time.Minute)
			j.activity.leave()
			closed := make(chan struct{}, 1)
			go func() { h.close(); closed <- struct{}{} }()
			h.take(1, message{Kind: kindBye})
			begin := time.Now()
			for ; len(codes) == 0 && (cut || time.Since(begin) < 5*second); time.Sleep(beatEvery) {
				require.Empty(t, closed)
				h.take(2, message{Kind: kindBeat, Beat: &beat{Calls: 1, Call: "Close", CallFor: time.Since(begin), CallLimit: time.Minute}})
			}
			h.take(2, message{Kind: kindBye})
			<-closed
			if cut {
				require.Equal(t, ExitLost, <-codes)
				require.Contains(t, (<-failures).Text, "rank 2 (host h2, pid 102) waits at step 0, in Close for 10.")
			}
			require.Empty(t, codes)
			<-time.After(second) // until look has ended
		})
	}
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
