package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSourceLeft is wrapped by the error of a run that abandoned its data source: within half a second after the context
// ended, the source neither yielded a batch nor ended. The goroutine of the source continues until the source returns.
var ErrSourceLeft = errors.New("the data source did not return within " + sourceGrace.String() + ": it was abandoned, with its goroutine")

const (
	// sourceGrace is the time of a source after the context ended: one that returns within it can be closed after Run.
	sourceGrace = 500 * time.Millisecond
	sourcePoll  = sourceGrace / 5
)

// source ranges over the data on its own goroutine, the reader, which may never return. One goroutine at a time owns
// the run: the reader while it handles a batch, or the caller of Run after it has taken the run.
type source[B any] struct {
	// turn handles a batch and must call enter at its end. It is nil after the run has left the reader.
	turn func(last bool, err error) (more bool)
	// crossings counts how often the reader entered and left the source; it is odd within. The goroutine that replaces
	// an odd value by compare-and-swap owns the run: the reader adds 1, the caller of Run stores leftBehind.
	crossings atomic.Int64
	count     int64 // the reader's copy of crossings
	// uncancelable: the context never ends, so the reader owns the run.
	uncancelable bool
	// shared: other goroutines can make the waiting steps. The run holds control except while the reader is in the
	// source.
	shared    bool
	control   sync.Mutex
	goroutine string // the number of the reader, if shared
}

const leftBehind = -1

func (s *source[B]) enter() {
	if !s.uncancelable {
		s.count++
		s.crossings.Store(s.count)
	}
}

// leave reports whether the run still belongs to the reader.
func (s *source[B]) leave() bool {
	if s.uncancelable {
		return true
	}
	s.count++
	return s.crossings.CompareAndSwap(s.count-1, s.count)
}

func (s *source[B]) all(data epochsOf[B]) error {
	s.enter()
	if !s.shared {
		data.all(func(last bool, err error) bool { return s.leave() && s.turn(last, err) })
		return nil
	}
	defer s.control.Lock()
	data.all(func(last bool, err error) bool {
		s.control.Lock()
		defer s.control.Unlock()
		return s.leave() && s.turn(last, err)
	})
	return nil
}

// wait reports in left that the context ended before the source; the run then belongs to the caller.
func (s *source[B]) wait(ctx context.Context, over <-chan error) (err error, left bool) {
	select {
	case err := <-over:
		return err, false
	case <-ctx.Done():
	}
	tick := time.NewTicker(sourcePoll)
	defer tick.Stop()
	for seen, since := s.crossings.Load(), time.Now(); ; {
		select {
		case err := <-over:
			return err, false
		case <-tick.C:
		}
		switch at := s.crossings.Load(); {
		case at != seen:
			seen, since = at, time.Now()
		case at%2 == 1 && time.Since(since) >= sourceGrace && s.crossings.CompareAndSwap(at, leftBehind):
			s.turn = nil
			return nil, true
		}
	}
}
