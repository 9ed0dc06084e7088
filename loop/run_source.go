package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSourceLeft: the context of a run ended, and the data source neither yielded a batch nor ended within half a
// second. The run ended without it and left its goroutine behind, because a function of Go cannot be ended from
// outside. That goroutine ends when the source returns; what the source uses may be in use until then.
var ErrSourceLeft = errors.New("the data source did not come back within " + sourceGrace.String() + ": it is left behind, with its goroutine")

const (
	// sourceGrace is how long a source may take to return once the context has ended: one that ends with the context,
	// or is only slow, then ends in order, and can be closed when Run returns.
	sourceGrace = 500 * time.Millisecond
	sourcePoll  = sourceGrace / 5
)

// source ranges over the data on its own goroutine. An iterator cannot be interrupted, so that goroutine may never
// return: the run is then taken from it.
type source[B any] struct {
	// turn is called with each batch, and must call enter at its end. It is nil once the source is left behind.
	turn func(last bool, err error) (more bool)
	// crossings counts the entries into the source and the exits from it: it is odd inside. Who changes it from an odd
	// number owns the run.
	crossings atomic.Int64
	count     int64 // crossings, as the source's goroutine left it
	// uncancelable: the context never ends, so the run stays with the source's goroutine.
	uncancelable bool
	// shared: other goroutines can make the steps that wait (see reading). The run holds control except while it waits
	// in the source.
	shared    bool
	control   sync.Mutex
	goroutine string // the number of the source's, where shared
}

const leftBehind = -1

func (s *source[B]) enter() {
	if !s.uncancelable {
		s.count++
		s.crossings.Store(s.count)
	}
}

// leave reports whether the run still belongs to the source's goroutine.
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
	defer s.control.Lock() // the run goes on without the source
	data.all(func(last bool, err error) bool {
		s.control.Lock()
		defer s.control.Unlock()
		return s.leave() && s.turn(last, err)
	})
	return nil
}

// wait waits until the source has ended. If the context ends while the source does not return, left is true: the run
// then belongs to the caller.
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
