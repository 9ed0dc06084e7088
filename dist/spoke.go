package dist

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

type spoke struct {
	j         *Job
	link      *link
	results   chan message
	dismissed chan struct{}
	dismiss   sync.Once

	mu    sync.Mutex
	awake wakefulness
	seen  time.Time // rank 0's last message
	left  bool      // or rank 0
	asked int64
	asks  map[int64]chan message
}

func (s *spoke) watch() {
	s.awake.look(time.Now()) // a stop may follow at once
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
		said := time.Time{}
		for {
			b := s.j.beat()
			now := time.Now()
			s.mu.Lock()
			if s.left {
				s.mu.Unlock()
				return
			}
			s.awake.look(now)
			silent := now.Sub(s.awake.excuse(s.seen))
			s.link.send(message{Kind: kindBeat, Beat: &b})
			s.mu.Unlock()
			switch {
			case silent > s.j.deadline:
				s.silent(silent)
			case silent > patient && now.Sub(said) >= again && s.j.rank == s.speaker(true):
				said = now
				go s.j.reportTo(standardError(), s.j.failure(ExitLost, 0, beat{}, 0, s.quiet(silent)))
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

func (s *spoke) send(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.link.send(m)
	}
}

// silent also reports to rank 0: the link may work in that direction.
func (s *spoke) silent(since time.Duration) {
	b := s.j.beat()
	s.send(message{Kind: kindFail, Failure: s.j.failure(ExitLost, s.j.rank, b, 0, fmt.Sprintf(
		"%s has received nothing from rank 0 for %v: the link between them was down. It was %s", s.j.who(s.j.rank), round(since), b.sentence(0)))})
	s.link.flush(beforeSpeaker)
	s.gone(s.quiet(since), true)
}

func (s *spoke) quiet(since time.Duration) string {
	return fmt.Sprintf("%s gives no sign of life for %v: its process is stopped, or its host or the link to it is down", s.j.who(0), round(since))
}

func (s *spoke) lost(err error) {
	s.mu.Lock()
	left, silent := s.left, time.Since(s.awake.excuse(s.seen))
	s.mu.Unlock()
	bad, ok := errors.AsType[*messageError](err)
	switch {
	case left:
		return
	case ok: // rank 0 reports it
		b := s.j.beat()
		f := s.j.failure(bad.code, 0, beat{}, 0, fmt.Sprintf("%s. %s was %s", bad.text(s.j.who(0)), s.j.who(s.j.rank), b.sentence(0)))
		s.send(message{Kind: kindFail, Failure: f})
		s.link.flush(answerWithin)
		time.Sleep(beforeSpeaker)
		s.j.end(f)
		return
	case silent > tooLong: // another rank reported its silence, and the launcher ends rank 0
		s.silent(silent)
		return
	}
	s.gone(fmt.Sprintf("%s was lost: its connection ended before Job.Close%s: it died, was killed, or its program ended early", s.j.who(0), fault(err)), false)
}

// beforeSpeaker delays ranks that do not report.
const beforeSpeaker = 300 * time.Millisecond

// speaker is rank 1, or the first rank on another host if rank 0's may be down.
func (s *spoke) speaker(host bool) int {
	other := slices.IndexFunc(s.j.peers, func(p peer) bool { return p.Host != s.j.peers[0].Host })
	if host && other > 0 {
		return other
	}
	return 1
}

// gone ends this process without rank 0. The speaker reports why.
func (s *spoke) gone(text string, host bool) {
	b := s.j.beat()
	f := s.j.failure(ExitLost, 0, beat{}, 0, fmt.Sprintf("%s. %s was %s", text, s.j.who(s.j.rank), b.sentence(0)))
	s.mu.Lock()
	givenUp := s.awake.givenUp(time.Now(), s.j.deadline)
	s.mu.Unlock()
	f.Here = s.j.rank == s.speaker(host) && !givenUp
	if !f.Here {
		time.Sleep(beforeSpeaker) // the launcher kills all when one ends: the reporting rank goes first
	}
	s.j.end(f)
}

func (s *spoke) call(m message) message {
	s.send(m)
	return <-s.results
}

func (s *spoke) leave(text string) {
	b := s.j.beat()
	s.send(message{Kind: kindLeave, Text: text, Beat: &b})
	<-s.dismissed
	s.close()
	time.Sleep(beforeSpeaker) // mpirun ends all when one fails: rank 0's error goes first
}

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
