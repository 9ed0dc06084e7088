package loop

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrSourceLeft: the context of a run ended, and the data source neither gave a batch nor ended within half a second. The run
// ended without it, and left the goroutine that waits for the source behind, because nobody can end a function of Go from
// outside; it ends when the source comes back. What the source uses may be in use until then.
var ErrSourceLeft = errors.New("the data source did not come back within " + sourceGrace.String() + ": it is left behind, with its goroutine")

const (
	// sourceGrace is how long a source may take to come back when the context has ended: one that ends with the context, or is only
	// slow, then ends in order, and whoever has it closed finds it unused.
	sourceGrace = 500 * time.Millisecond
	sourceLook  = sourceGrace / 5
)

// source ranges over the data on a goroutine of its own. An iterator cannot be made to give up, so that goroutine may never
// come back: it then has the source alone, and nothing of the run.
type source[B any] struct {
	// turn is called with each batch, and must call enter at its end. It is nil when the source is left behind.
	turn func(B, error) (more bool)
	// at counts the ways into the source and out of it: odd is inside. Whoever changes it from there has the run.
	at atomic.Int64
	n  int64 // what at was last, for the source's goroutine
	// free runs have a context that never ends: nobody can take the run away.
	free bool
}

const leftBehind = -1

func (s *source[B]) enter() {
	if !s.free {
		s.n++
		s.at.Store(s.n)
	}
}

// leave tells whether the run is still that of the source's goroutine.
func (s *source[B]) leave() bool {
	if s.free {
		return true
	}
	s.n++
	return s.at.CompareAndSwap(s.n-1, s.n)
}

func (s *source[B]) all(data Data[B]) error {
	s.enter()
	for batch, err := range data {
		if !s.leave() || !s.turn(batch, err) {
			break
		}
	}
	return nil
}

// wait waits until the source is over. Where the context ends while the source keeps its goroutine, the run goes to the
// caller instead.
func (s *source[B]) wait(ctx context.Context, over <-chan error) (err error, left bool) {
	select {
	case err := <-over:
		return err, false
	case <-ctx.Done():
	}
	tick := time.NewTicker(sourceLook)
	defer tick.Stop()
	for seen, since := s.at.Load(), time.Now(); ; {
		select {
		case err := <-over:
			return err, false
		case <-tick.C:
		}
		switch at := s.at.Load(); {
		case at != seen:
			seen, since = at, time.Now()
		case at%2 == 1 && time.Since(since) >= sourceGrace && s.at.CompareAndSwap(at, leftBehind):
			s.turn = nil
			return nil, true
		}
	}
}
