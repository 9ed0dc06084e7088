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
	// tooLong is a silence that no busy machine explains.
	tooLong = 4 * beatEvery
	// answerWithin is how long rank 0 waits for the stack of a rank that is stuck, and for its last messages to go.
	answerWithin = 500 * time.Millisecond
)

// wakefulness knows whether this process was stopped. Its lock is the holder's.
type wakefulness struct {
	looked, woke time.Time
	slept        time.Duration // the last time
}

// look is called several times a second. It tells whether this process did not run for longer than a busy machine
// explains.
func (w *wakefulness) look(now time.Time) (slept bool) {
	if gap := now.Sub(w.looked); !w.looked.IsZero() && gap > time.Second {
		w.woke, w.slept, slept = now, gap, true
	}
	w.looked = now
	return slept
}

// givenUp tells whether the process is only just awake, after so long that the others have given it up, and said so.
func (w *wakefulness) givenUp(now time.Time, deadline time.Duration) bool {
	enough := deadline * 3 / 4
	return !w.looked.IsZero() && now.Sub(w.looked) > max(enough, time.Second) || w.slept > enough && now.Sub(w.woke) < time.Second
}

// link is one side of a control connection, once the other is known.
type link struct {
	conn   net.Conn
	done   chan struct{}
	failed func(error)

	mu     sync.Mutex
	more   sync.Cond // the queue is longer, or closed
	queue  [][]byte  // frames, for the goroutine that writes: nobody waits for a peer that does not read
	closed bool      // nothing is sent any more
}

func newLink(c net.Conn, limit time.Duration, failed func(error)) *link {
	l := &link{conn: c, done: make(chan struct{}), failed: failed}
	l.more.L = &l.mu
	go func() {
		defer close(l.done)
		for f, ok := l.next(); ok; f, ok = l.next() {
			if err := put(c, f, limit); err != nil {
				l.mu.Lock()
				l.queue, l.closed = nil, true // what is left has no reader
				l.mu.Unlock()
				failed(err)
				return
			}
		}
	}()
	return l
}

// next waits for a frame to write; false when no more will come.
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

// mostBeats is how many messages may wait before beats are left out. Others are as many as there are calls that wait.
const mostBeats = 64

// send hands a message over; false where nothing is sent any more, or a peer does not read and it is a beat.
func (l *link) send(m message) bool {
	f, err := frame(m)
	if err != nil {
		go l.failed(err) // which takes locks that the caller may hold
		return false
	}
	return l.push(f, m.Kind == kindBeat)
}

// push hands a frame over, as send does.
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

// flush ends the writing, and waits for what was handed over, no longer than limit.
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

// tell hands a message to all links but nil ones. It is encoded once: a welcome names all ranks, so encoding it for
// each would be work by the square of their number.
func tell(links []*link, m message) {
	f, err := frame(m)
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

// flush ends the writing on all links but nil ones, at the same time.
func flush(links []*link) {
	var flushed sync.WaitGroup
	for _, l := range links {
		if l != nil {
			flushed.Go(func() { l.flush(answerWithin) })
		}
	}
	flushed.Wait()
}

// fault is what a message has in brackets of the error that ended a connection; "" where its other side closed it.
func fault(err error) string {
	if errors.Is(err, net.ErrClosed) || strings.HasSuffix(err.Error(), "EOF") {
		return ""
	}
	return " (" + err.Error() + ")"
}
