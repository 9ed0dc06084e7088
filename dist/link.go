package dist

import (
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	beatEvery = 250 * time.Millisecond
	lookEvery = 100 * time.Millisecond
	// tooLong exceeds a busy machine's silence.
	tooLong = 4 * beatEvery
	// answerWithin is for a stuck rank's stack and for last messages.
	answerWithin = 500 * time.Millisecond
)

// wakefulness detects that this process was stopped, or starved. Its user locks it.
type wakefulness struct {
	looked time.Time
	naps   []nap
}

type nap struct {
	woke time.Time
	took time.Duration
}

const mostNaps = 1000

// look is called several times per second. A nap exceeds a busy machine's pause.
func (w *wakefulness) look(now time.Time) {
	if gap := now.Sub(w.looked); !w.looked.IsZero() && gap > time.Second {
		w.naps = append(w.naps[max(0, len(w.naps)+1-mostNaps):], nap{now, gap})
	}
	w.looked = now
}

// excuse moves the begin of a silence or a wait by the naps since then: messages were unread. It does not restart the
// time, else a rank could stay silent forever while this process starves.
func (w *wakefulness) excuse(begin time.Time) time.Time {
	moved := begin
	for _, n := range w.naps {
		moved = moved.Add(max(0, min(n.took, n.woke.Sub(begin))))
	}
	return moved
}

// givenUp: the process woke so late that the others reported it lost.
func (w *wakefulness) givenUp(now time.Time, deadline time.Duration) bool {
	enough := deadline * 3 / 4
	last := nap{}
	if len(w.naps) > 0 {
		last = w.naps[len(w.naps)-1]
	}
	return !w.looked.IsZero() && now.Sub(w.looked) > max(enough, time.Second) || last.took > enough && now.Sub(last.woke) < time.Second
}

type link struct {
	conn   net.Conn
	done   chan struct{}
	failed func(error)

	mu     sync.Mutex
	more   sync.Cond
	queue  [][]byte // senders never wait
	closed bool
}

func newLink(c net.Conn, limit time.Duration, failed func(error)) *link {
	l := &link{conn: c, done: make(chan struct{}), failed: failed}
	l.more.L = &l.mu
	go func() {
		defer close(l.done)
		for f, ok := l.next(); ok; f, ok = l.next() {
			if err := put(c, f, limit); err != nil {
				l.mu.Lock()
				l.queue, l.closed = nil, true
				l.mu.Unlock()
				failed(err)
				return
			}
		}
	}()
	return l
}

func (l *link) next() (f []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.more.Wait()
	}
	if len(l.queue) == 0 {
		return nil, false
	}
	f, l.queue = l.queue[0], l.queue[1:]
	return f, true
}

// mostBeats: longer queues drop beats. Waiting calls bound other messages.
const mostBeats = 64

// send returns false if the link is closed, or the peer does not read beats.
func (l *link) send(m message) bool {
	f, err := frame(m, mostMessage)
	if err != nil {
		go l.failed(err) // takes the caller's locks
		return false
	}
	return l.push(f, m.Kind == kindBeat)
}

func (l *link) push(frame []byte, beat bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || beat && len(l.queue) >= mostBeats {
		return false
	}
	l.queue = append(l.queue, frame)
	l.more.Signal()
	return true
}

func (l *link) flush(limit time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.more.Signal()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(limit):
	}
}

// tell encodes once for all links: a welcome names all ranks.
func tell(links []*link, m message) {
	f, err := frame(m, mostMessage)
	for _, l := range links {
		switch {
		case l == nil:
		case err != nil:
			go l.failed(err)
		default:
			l.push(f, m.Kind == kindBeat)
		}
	}
}

func flush(links []*link) {
	var flushed sync.WaitGroup
	for _, l := range links {
		if l != nil {
			flushed.Go(func() { l.flush(answerWithin) })
		}
	}
	flushed.Wait()
}

func fault(err error) string {
	if errors.Is(err, net.ErrClosed) || strings.HasSuffix(err.Error(), "EOF") {
		return ""
	}
	return " (" + err.Error() + ")"
}
