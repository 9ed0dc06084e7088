// Package epochs ranges over a run's batches from a position on, and reports which end an epoch.
package epochs

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
)

type Source[B any] interface {
	From(position int64) iter.Seq2[B, error]
}

type Range[B any] struct {
	Source Source[B]
	// Plain, if not nil, replaces the Source: an iterator from the first batch to an epoch's end, also repeatedly.
	Plain iter.Seq2[B, error]
	// Position and Epochs count the batches and complete epochs of earlier runs.
	Position, Epochs int64
	// Once leaves a Source after its first epoch.
	Once bool
	// Until, if not 0, is the run's number of epochs: ended data begins again.
	Until int64
	// Ahead: a batch that may end its epoch waits for the next.
	Ahead bool
	// Early may be nil.
	Early *Early
	// Newest receives each batch: copies cost time.
	Newest *B
}

// Early is shared by a source and its run, because an abandoned source must not hold the run.
type Early struct {
	Asked atomic.Bool
	Taken bool
	Skips atomic.Bool
	// Uncounted is the number of passes left out, if earlier runs counted no epochs.
	Uncounted int64
}

// All yields once for each batch, which is then in Newest, or error of the data, and reports an epoch's last.
func (e Range[B]) All(yield func(last bool, err error) bool) {
	isPlain, again := e.Plain != nil, e.Until > 0
	p := pass[B]{newest: e.Newest, ahead: e.Ahead, once: e.Once && !isPlain, plain: isPlain, place: placeOf(e.Newest), yield: yield}
	p.ahead = p.ahead || p.once && p.place != nil
	if p.early = e.Early; p.early == nil {
		p.early = new(Early)
	}
	if p.once && e.Epochs > 0 {
		return
	}
	if isPlain {
		p.skip = e.Position
		p.early.Skips.Store(p.skip > 0)
	}
	for {
		batches, taken, skip := e.Plain, p.taken, p.skip
		if !isPlain {
			batches = e.Source.From(e.Position + taken)
		}
		if batches == nil {
			yield(false, fmt.Errorf("the source returned no iterator for position %d", e.Position+taken))
			return
		}
		p.over(batches)
		p.again = isPlain
		nothing := p.taken == taken && p.skip == skip
		if p.taken == taken && !p.stopped && e.Epochs == 0 {
			p.early.Uncounted++
		}
		switch {
		case p.stopped:
			return
		case p.skip > 0 && (!again || nothing):
			yield(false, errSkipped(e.Position-p.skip, e.Position))
			return
		case !again || nothing || p.skip == 0 && p.taken == 0 && p.early.Uncounted >= e.Until:
			return
		}
	}
}

// After returns an iterator's batches after the first n. Fewer than n are an error.
func After[B any](batches iter.Seq2[B, error], n int64) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var batch, none B
		p := pass[B]{newest: &batch, skip: n, yield: func(_ bool, err error) bool { return yield(batch, err) }}
		if p.over(batches); p.skip > 0 && !p.stopped {
			yield(none, errSkipped(n-p.skip, n))
		}
	}
}

func errSkipped(had, position int64) error {
	return fmt.Errorf("the data ended after %d batches, but the run continues after batch %d: give it the same data as the earlier run", had, position)
}

type pass[B any] struct {
	place   func() (epoch int64, last, known bool)
	yield   func(last bool, err error) bool
	newest  *B
	skip    int64
	taken   int64
	ahead   bool
	plain   bool
	once    bool
	stopped bool
	again   bool // the iterator begins another time
	early   *Early
	held    B
}

func (p *pass[B]) over(batches iter.Seq2[B, error]) {
	if p.place != nil || p.ahead {
		p.overEpochs(batches)
		return
	}
	for batch, err := range batches {
		switch {
		case err != nil:
		case p.skip > 0:
			p.leaveOut()
			continue
		default:
			p.taken++
		}
		*p.newest = batch
		if !p.yield(false, err) {
			p.stopped = true
			return
		}
	}
}

func (p *pass[B]) leaveOut() {
	if p.skip--; p.skip == 0 && p.early != nil {
		p.early.Skips.Store(false)
	}
}

func (p *pass[B]) overEpochs(batches iter.Seq2[B, error]) {
	var epoch int64
	holds := false
	for batch, err := range batches {
		if p.skip > 0 && err == nil {
			p.leaveOut()
			continue
		}
		if holds {
			p.early.Asked.Store(false)
		}
		before := epoch
		last, known := false, false
		if holds {
			p.held = *p.newest
		}
		*p.newest = batch // a loop variable would be allocated
		if p.place != nil && err == nil {
			epoch, last, known = p.place()
			if p.ahead && !p.plain && epoch < before {
				err = fmt.Errorf("a batch of epoch %d comes after one of epoch %d, so the data has no common epochs, as a mixture of sets has none: count in steps, "+
					"or give the sets as loop.Data, whose end is that of an epoch", epoch, before)
			}
			if p.again {
				if s, ok := any(p.newest).(abilities.Shuffled); ok && epoch == 0 && s.Shuffled() {
					err = errSameEpoch
				}
				p.again = false
			}
		}
		if holds {
			*p.newest, p.early.Taken = p.held, err == nil
			if !p.give(err == nil && epoch != before, nil) {
				return
			}
			*p.newest, p.early.Taken = batch, false
		}
		if err == nil {
			p.taken++
		}
		if holds = p.ahead && err == nil && !last && (p.plain || !known); holds {
			p.early.Asked.Store(true)
		} else if !p.give(last, err) {
			return
		}
	}
	if holds {
		p.early.Asked.Store(false)
		p.give(true, nil)
	}
}

func (p *pass[B]) give(last bool, err error) bool {
	p.stopped = !p.yield(last, err) || last && p.once
	return !p.stopped
}

func placeOf[B any](batch *B) func() (epoch int64, last, known bool) {
	// A pointer in an interface needs no allocation.
	if e, ok := any(batch).(abilities.InEpoch); ok {
		return e.InEpoch
	}
	if t := reflect.TypeFor[B](); t.Kind() != reflect.Interface && !t.Implements(reflect.TypeFor[abilities.InEpoch]()) {
		return nil
	}
	return func() (epoch int64, last, known bool) { // B is a pointer or an interface
		if e, ok := any(*batch).(abilities.InEpoch); ok {
			return e.InEpoch()
		}
		return 0, false, false
	}
}

var errSameEpoch = errors.New("the iterator yields epoch 0 of a shuffled set again, in the same order: give the run the Batches of the set instead of their All, or " +
	"make a pipeline over Batches.From by loop.From")
