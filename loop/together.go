package loop

import (
	"errors"
	"fmt"
	"time"
)

type agreement interface {
	// called at both ends of a run with this process's failure, and the one known to all
	meet(where place, known, failure error) error
	// called before batches that only this process may have, with the newest's samples; waiting: batches in no block
	use(waiting, samples int64) (end bool, err error)
	// ends the run before an unusable batch
	refuse(err error) (end bool, _ error)
	next(end bool, failure error) (bool, error)
	// called after work that a process may have stopped
	border(stop bool) (bool, error)
	interrupts(h *hook) bool
	timed(steps int, took time.Duration)
	// makes the waiting steps and the work due at the end
	end(left bool, err error) error
}

type place int64

const (
	atBegin place = iota
	atStarted
	atBatch
	afterIteration
	atEnd
	atOver
	atClosed
)

type alone[S, B any] struct{ *run[S, B] }

func (a alone[S, B]) meet(_ place, _, failure error) error { return failure }
func (a alone[S, B]) use(int64, int64) (bool, error)       { return false, nil }
func (a alone[S, B]) timed(steps int, took time.Duration) {
	a.limitBlock(a.blocks.current, steps, took)
}

func (a alone[S, B]) refuse(err error) (bool, error) {
	a.reason = Failed
	return false, err
}

func (a alone[S, B]) next(end bool, failure error) (bool, error) {
	switch {
	case end:
	case a.ctx.Err() != nil:
		return a.cancelled()
	case failure != nil:
		return a.refuse(a.wrap(failure))
	}
	return end, nil
}

func (a alone[S, B]) border(stop bool) (bool, error) {
	a.acted = false
	return stop, nil
}

func (a alone[S, B]) interrupts(h *hook) bool {
	a.activity = ofHook(h)
	return h.interrupter.Interrupts()
}

func (a alone[S, B]) end(left bool, err error) error {
	r := a.run
	if err != nil && r.blocks.pending() { // without blocks these steps came first
		failure, end := err, false
		if end, err = r.shieldedEnd(r.flush); err == nil && !end {
			r.reason, err = Failed, failure
		}
	}
	if err == nil && r.reason == DataEnded {
		last := r.flush
		if r.ctx.Err() != nil {
			last = r.cancelled // the context's end may have ended the data
		}
		if _, err = r.shieldedEnd(last); err != nil && left {
			err = fmt.Errorf("%w; %w", err, ErrSourceLeft)
		}
	}
	if err == nil && r.begun && !(r.reason == Stopped && errors.Is(r.stop, ErrPause)) {
		_, err = r.shieldedEnd(func() (bool, error) { return r.atEdge(false) })
	}
	return r.await(err)
}
