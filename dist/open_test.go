package dist

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secret = "a secret of the job, 32 bytes..."

// opened returns rank 0's side of a job of n ranks, which gathers.
func opened(t *testing.T, n int) (h *hub, me hello, gathered <-chan error) {
	t.Helper()
	j := newJob(0, n)
	me = hello{Job: "unguessable-6f1c2a", Attempt: "41", Size: n, Host: "host-of-rank-0", PID: 1, LocalRank: -1, LocalSize: -1, Program: []string{"program", "v7"}}
	h, err := newHub(j, "127.0.0.1:0", me, secret)
	require.NoError(t, err)
	j.hub = h
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- h.gather(ctx) }()
	return h, me, done
}

func newJob(rank, size int) *Job {
	return &Job{rank: rank, size: size, deadline: time.Minute, over: make(chan struct{}), activity: activity{start: time.Now()}}
}

// come connects as a rank that changes what it says.
func come(t *testing.T, h *hub, me hello, rank int, change func(*hello)) (*spoke, error) {
	me.Rank = rank
	if change != nil {
		change(&me)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return connect(ctx, newJob(rank, h.j.size), []string{h.listener.Addr().String()}, me, secret)
}

// tricks are what a stranger sends; zero is rank 0's opening, of which it has none before it sends its own.
var tricks = []func(c net.Conn) (zero []byte){
	func(c net.Conn) []byte { // any bytes
		b := make([]byte, rand.IntN(500))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		_, _ = c.Write(b)
		return nil
	},
	func(c net.Conn) []byte { _, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); return nil },
	func(net.Conn) []byte { return nil },
	func(c net.Conn) []byte { // a hello without a proof, as of protocol 2
		f, _ := frame(message{Kind: kindHello, Hello: &hello{Rank: 1, Size: 3}}, mostMessage)
		_, _ = c.Write(f)
		return nil
	},
	func(c net.Conn) []byte { // a long one
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, 1<<30), make([]byte, 1000)...))
		return nil
	},
	func(c net.Conn) []byte { // another version
		b := newOpening()
		b[len(mark)] = byte(rand.Uint32())
		_, _ = c.Write(b)
		return nil
	},
	func(c net.Conn) []byte {
		return opens(c, func(own, zero []byte) []byte { return make([]byte, sizeProof) })
	},
	func(c net.Conn) []byte { // another secret
		return opens(c, func(own, zero []byte) []byte { return proof("", sideRank, own, zero) })
	},
	func(c net.Conn) []byte { // rank 0's own words
		return opens(c, func(own, zero []byte) []byte { return zero })
	},
	func(c net.Conn) []byte { // a hello in place of the proof
		return opens(c, func(own, zero []byte) []byte {
			f, _ := frame(message{Kind: kindHello, Hello: &hello{Rank: 1, Size: 3}}, mostMessage)
			return f
		})
	},
}

func opens(c net.Conn, prove func(own, zero []byte) []byte) (zero []byte) {
	own, zero := newOpening(), make([]byte, sizeOpening)
	if _, err := c.Write(own); err != nil {
		return nil
	}
	if _, err := io.ReadFull(c, zero); err != nil {
		return nil
	}
	_, _ = c.Write(prove(own, zero))
	return zero
}

// invade makes n connections of strangers, of all kinds, and holds some idle ones. It returns the others' answers.
func invade(t *testing.T, address string, n int64) (answers [][]byte) {
	var idle []net.Conn
	var mu sync.Mutex
	var begun atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := begun.Add(1); i <= n; i = begun.Add(1) {
				c, err := net.Dial("tcp", address)
				if err != nil {
					return // the job is complete, and nothing listens
				}
				var all []byte
				if i%13 != 0 {
					_ = c.SetDeadline(time.Now().Add(time.Minute))
					all = tricks[int(i)%len(tricks)](c)
					_ = c.(*net.TCPConn).CloseWrite()
					rest, _ := io.ReadAll(c) // without what a reset loses
					all = append(all, rest...)
				}
				mu.Lock()
				if i%13 == 0 {
					idle = append(idle, c)
				} else {
					c.Close()
					answers = append(answers, all)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Cleanup(func() {
		for _, c := range idle {
			c.Close()
		}
	})
	return answers
}

// S40: strangers that know the address alone make connections of all kinds, while some hold idle ones. None joins,
// none receives more than an opening, and the right ranks join among them. Before, a hello was answered with the job's
// name, then with its attempt and its size, and a hello with these joined.
func TestS40_strangersLearnNothing(t *testing.T) {
	h, me, gathered := opened(t, 3)
	learnt := func(answers [][]byte) (openings int) {
		for _, a := range answers {
			if len(a) == 0 {
				continue
			}
			openings++
			require.Len(t, a, sizeOpening)
			require.Equal(t, append([]byte(mark), protocol), a[:len(mark)+1], "the rest is random")
		}
		return openings
	}
	answers := invade(t, h.listener.Addr().String(), strangerConnections/2)
	require.Greater(t, len(answers), strangerConnections/3)
	require.Greater(t, learnt(answers), len(answers)/4)
	require.Empty(t, gathered)
	require.Regexp(t, `^; \d+ connections were refused, the last of 127\.0\.0\.1:\d+: its? [a-z ]+`, h.strangers.String())

	later := make(chan [][]byte)
	go func() { later <- invade(t, h.listener.Addr().String(), strangerConnections/2) }()
	var spokes [2]*spoke
	var ranks sync.WaitGroup
	for r := range spokes {
		ranks.Go(func() {
			var err error
			spokes[r], err = come(t, h, me, 1+r, nil)
			assert.NoError(t, err)
		})
	}
	ranks.Wait()
	require.False(t, t.Failed())
	require.NoError(t, <-gathered)
	learnt(<-later)
	_, err := net.Dial("tcp", h.listener.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "nothing listens when all ranks are there")
	h.watch()
	for _, s := range spokes {
		s.j.spoke = s
		s.watch()
	}
	for _, j := range []*Job{h.j, spokes[0].j, spokes[1].j} {
		ranks.Go(func() {
			assert.NoError(t, j.Barrier("among strangers"))
			assert.NoError(t, j.Close())
		})
	}
	ranks.Wait()
}

func TestHub_saysWhoIsMissing(t *testing.T) {
	h, err := newHub(newJob(0, 3), "127.0.0.1:0", hello{Size: 3}, secret)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, h.gather(ctx), "2 of 3 ranks have not connected to rank 0")
}

// failing is a listener without file descriptors for the first connections.
type failing struct {
	net.Listener
	left  int
	conns chan net.Conn
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	c, ok := <-f.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (f *failing) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7} }

// S42: rank 0 is without file descriptors for a while, which it reports once, and then the ranks join. Before, the
// first failure ended the gathering.
func TestS42_acceptFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const failures = 20
		l := &failing{left: failures, conns: make(chan net.Conn)}
		defer close(l.conns)
		h := &hub{j: newJob(0, 2), listener: l, secret: secret}
		var said lockedText
		begin := time.Now()
		comers := h.open(ctx, &said)
		zero, rank := net.Pipe()
		l.conns <- zero
		require.NoError(t, prove(rank, secret))
		require.NoError(t, write(rank, message{Kind: kindHello, Hello: &hello{Rank: 1}}, second))
		require.Equal(t, 1, (<-comers).hello.Rank)
		require.Equal(t, "lazo: rank 0 cannot accept connections at 127.0.0.1:7, and tries again: accept tcp: accept4: too many open files\n", said.String())
		var pauses time.Duration
		for i := range failures {
			pauses += pause(i)
		}
		require.Equal(t, pauses, time.Since(begin)) // of the bubble's clock
	})
}

// S42: beyond the limit each further connection without a proof ends the oldest.
func TestS42_strangersAreLimited(t *testing.T) {
	var s strangers
	var ends []net.Conn
	for i := range 5 {
		zero, rank := net.Pipe()
		defer rank.Close()
		ends = append(ends, rank)
		s.enter(zero, 3)
		require.Len(t, s.open, min(i+1, 3))
	}
	for _, c := range ends[:2] {
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	s.leave(s.open[1], nil) // it has proved the secret, so the next one does not end it
	require.Len(t, s.open, 2)
	require.Empty(t, s.String())
}

// Without file descriptors, the older half of the connections ends at once.
func TestStrangers_endHalf(t *testing.T) {
	var s strangers
	require.False(t, s.endHalf())
	var conns, others []net.Conn
	for range 9 {
		here, there := net.Pipe()
		s.enter(here, 100)
		conns, others = append(conns, here), append(others, there)
	}
	require.True(t, s.endHalf())
	require.Equal(t, conns[5:], s.open)
	for _, c := range others[:5] {
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
}
