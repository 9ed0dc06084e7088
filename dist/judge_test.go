package dist

import (
	"io"
	"net"
	"os"
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

func TestPeers_onHosts(t *testing.T) {
	host := func(name string) *hello { return &hello{Host: name, LocalRank: -1, LocalSize: -1} }
	got := peers([]*hello{host("a"), host("b"), host("a")})
	require.Equal(t, []peer{{Host: "a", LocalSize: 2}, {Host: "b", LocalSize: 1}, {Host: "a", LocalRank: 1, LocalSize: 2}}, got)
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
