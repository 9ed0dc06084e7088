package dist

import (
	"fmt"
	"sync"
	"time"
)

// spoke is the side of any other rank.
type spoke struct {
	j       *Job
	link    *link
	results chan message
	// dismissed is closed when rank 0 has said that it leaves.
	dismissed chan struct{}
	dismiss   sync.Once

	mu    sync.Mutex
	awake wakefulness
	seen  time.Time // when rank 0 said something last
	left  bool      // it leaves, or this rank does
	asked int64     // requests to the store so far
	asks  map[int64]chan message
}

// watch says what this rank does, and hears what rank 0 says, until the job ends.
func (s *spoke) watch() {
	go func() {
		for {
			m, err := read(s.link.conn, mostMessage)
			if err != nil {
				s.lost(err)
				return
			}
			s.take(m)
		}
	}()
	go func() {
		for {
			b := s.j.beat()
			now := time.Now()
			s.mu.Lock()
			if s.left {
				s.mu.Unlock()
				return
			}
			if s.awake.look(now) {
				s.seen = now
			}
			silent := now.Sub(s.seen)
			s.link.send(message{Kind: kindBeat, Beat: &b})
			s.mu.Unlock()
			if silent > s.j.deadline {
				s.silent(silent)
			}
			time.Sleep(beatEvery)
		}
	}()
}

func (s *spoke) take(m message) {
	s.mu.Lock()
	s.seen = time.Now()
	s.left = s.left || m.Kind == kindBye
	s.mu.Unlock()
	if m.Kind == kindBye {
		s.dismiss.Do(func() { close(s.dismissed) })
	}
	switch m.Kind {
	case kindResult:
		s.results <- m
	case kindValue, kindTaken, kindNone:
		s.answered(m)
	case kindStack:
		s.send(message{Kind: kindStack, Text: stacks()})
	case kindEnd:
		if m.Failure != nil {
			s.j.end(m.Failure)
		}
	}
}

// send hands a message over, unless this rank has left.
func (s *spoke) send(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.link.send(m)
	}
}

// silent: rank 0 says nothing.
func (s *spoke) silent(since time.Duration) {
	s.gone(fmt.Sprintf("%s gives no sign of life for %v: its process is stopped, or its host or the link to it is down", s.j.who(0), round(since)), true)
}

// lost: the connection to rank 0 has ended.
func (s *spoke) lost(err error) {
	s.mu.Lock()
	left, silent := s.left, time.Since(s.seen)
	s.mu.Unlock()
	switch {
	case left:
		return
	case silent > tooLong: // the launcher ends it, since another rank has seen that
		s.silent(silent)
		return
	}
	s.gone(fmt.Sprintf("%s was lost: its connection ended before Job.Close%s: it died, was killed, or its program ended early", s.j.who(0), fault(err)), false)
}

// beforeSpeaker is how much later than the rank that says why a job ended the others exit.
const beforeSpeaker = 300 * time.Millisecond

// gone ends this process, for rank 0 cannot. One of those that are left says why: rank 1, or the first rank on another
// host where that of rank 0 may be down.
func (s *spoke) gone(text string, host bool) {
	speaker := 1
	if host {
		for r, p := range s.j.peers {
			if p.Host != s.j.peers[0].Host {
				speaker = r
				break
			}
		}
	}
	b := s.j.beat()
	f := s.j.failure(ExitLost, 0, beat{}, 0, fmt.Sprintf("%s. %s was %s", text, s.j.who(s.j.rank), b.sentence(0)))
	s.mu.Lock()
	givenUp := s.awake.givenUp(time.Now(), s.j.deadline)
	s.mu.Unlock()
	f.Here = s.j.rank == speaker && !givenUp
	if !f.Here {
		time.Sleep(beforeSpeaker) // a launcher kills all when one has ended: the one that says why comes first
	}
	s.j.end(f)
}

// call is this rank's part in an agreement.
func (s *spoke) call(m message) message {
	s.send(m)
	return <-s.results
}

// leave says that this rank's program ends by an error, and waits until those of all do; else the job ends.
func (s *spoke) leave(text string) {
	b := s.j.beat()
	s.send(message{Kind: kindLeave, Text: text, Beat: &b})
	<-s.dismissed
	s.close()
	time.Sleep(beforeSpeaker) // mpirun ends all when one has failed: the error of rank 0 comes first
}

// close says that this rank goes, and ends the connection.
func (s *spoke) close() {
	s.mu.Lock()
	if !s.left {
		s.link.send(message{Kind: kindBye})
	}
	s.left = true
	s.mu.Unlock()
	s.link.flush(answerWithin)
	s.link.conn.Close()
}
