package loop

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/epochs"
	"github.com/lazo-ml/lazo/internal/shield"
)

// SingleSteps makes each step before the run takes the next batch, so StepBlock ([Stepper]) receives one batch at a
// time. Use it for data that depends on the steps other than through the state, as by a file, or that reads the state
// in a [Job]. data.Prefetch still takes batches ahead; a run in [Epochs] takes one if the batches do not report an
// epoch's end.
func SingleSteps() Option { return setting(func(s *settings) { s.single = true }) }

// reading lets goroutines read the state while batches wait. The first reader makes their steps if the source has
// control; else the order is undefined.
type reading struct {
	on      bool
	waiting atomic.Bool
	making  sync.Mutex             // held by the read that makes the steps; other reads wait
	maker   atomic.Pointer[string] // its goroutine; changed only with control
}

func (q *reading) made() {
	if q.on && q.maker.Load() != nil {
		q.waiting.Store(false)
		q.maker.Store(nil)
		q.making.Unlock()
	}
}

// beginReading registers beforeRead with the state. In another run's source, this makes the steps waiting there.
func (r *run[S, B]) beginReading() (end func(), err error) {
	end, r.early = func() {}, new(epochs.Early)
	state, ok := as[abilities.Queued](r.turn.State, &r.turn.State)
	if !ok {
		return end, nil
	}
	err = shield.Do(func() (err error) {
		remove, err := state.OnRead(r.beforeRead)
		if err == nil && remove != nil {
			r.reading.on, end = true, remove
		}
		return err
	})
	return end, err
}

const untilStepped = "loop: the state was read while batches wait for their steps"

var (
	errReadAhead = errors.New("loop: the state was read on a goroutine of data.Prefetch or data.ParallelMap, which makes " +
		"batches before the steps of earlier ones: read it in the data source, outside Prefetch and ParallelMap")
	errReadByJob   = errors.New(untilStepped + ", which the processes of a job make only together: give the run the option SingleSteps")
	errReadSkipped = errors.New("loop: the state was read by the data while the batches of the earlier run are skipped: they were made with earlier " +
		"states, so the data would continue differently: make it with loop.From, which begins at a position")
	errReadEpoch = errors.New("loop: the state was read by the data while a batch is taken ahead, to know whether it ends its epoch: " +
		"count in steps, or give the batches the method InEpoch")
)

var errRead = errors.New("the state is read")

func (r *run[S, B]) beforeRead() error {
	q := &r.reading
	switch {
	case ahead.Here():
		return errReadAhead
	case r.early.Skips.Load():
		if own, _ := ahead.Origin(); own == r.source.Goroutine {
			return errReadSkipped
		}
	case !q.waiting.Load() && !r.early.Asked.Load():
		return nil
	}
	own, parent := ahead.Origin()
	if m := q.maker.Load(); m != nil && (own == *m || parent == *m) {
		return nil
	}
	q.making.Lock()
	if !q.waiting.Load() && !r.early.Asked.Load() { // another read made them
		q.making.Unlock()
		return nil
	}
	s := r.source
	if !s.Control.TryLock() {
		q.making.Unlock()
		if own == s.Goroutine {
			return errors.New(untilStepped + ", by " + r.activity.String() + ", which must not read it: give the run the option SingleSteps")
		}
		return nil
	}
	defer s.Control.Unlock()
	var err error
	left := s.Left()
	switch {
	case !left && r.job != nil:
		err = errReadByJob
	case !left && r.early.Asked.Load():
		err = errReadEpoch
	case !left && s.Leave():
		q.maker.Store(&own)
		defer q.made()
		s.Turn(false, errRead)
		return r.failure
	case own == s.Goroutine:
		err = ErrSourceLeft
	}
	q.making.Unlock()
	return err
}
