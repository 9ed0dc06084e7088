package loop

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
)

// Source is data that a run can begin at any position: the number of batches taken since the beginning, over all epochs
// ([Elapsed].Steps). The batches of a set ([data.Set.Batches]) are a Source. [Data] makes one of a plain iterator, and
// [From] of a function.
//
// [data.Set.Batches]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Set.Batches
type Source[B any] interface {
	// From returns the batches from a position on, each with a nil error. They end with their epoch, or continue into
	// the next if the batches report where an epoch ends ([Stepper]). An error ends the run.
	From(position int64) iter.Seq2[B, error]
}

// Data makes a [Source] of a plain iterator. A run that begins at a later position ranges over it from its start and
// leaves out the earlier batches. If [Until] is in [Epochs], the run ranges over it once per epoch, so it must begin
// again each time. Shuffled batches of a set that are in epoch 0 again are an error: the order would
// repeat.
//
// A batch must not change until its step is over; a block of steps holds several. If one of the first batches is in the
// memory of an earlier one, the run makes single steps. The iterator runs on a goroutine of
// the run. If it waits for something, it should end when the context of the run ends ([Loop.Run]).
type Data[B any] func(yield func(B, error) bool)

// From skips the batches before the position. Fewer batches than that are an error.
func (d Data[B]) From(position int64) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var batch, none B
		p := pass[B]{newest: &batch, skip: position, yield: func(_ bool, err error) bool { return yield(batch, err) }}
		if p.over(iter.Seq2[B, error](d)); p.skip > 0 && !p.stopped {
			yield(none, errSkipped(position-p.skip, position))
		}
	}
}

// From makes a [Source] of a function that returns the batches from a position on, such as a pipeline over a set, a
// file with an index, or an environment.
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		return data.Prefetch(set.Batches(32, data.Shuffle(0)).From(position), 4)
//	})
func From[B any](from func(position int64) iter.Seq2[B, error]) Source[B] {
	if from == nil {
		return nil
	}
	return sourceFunc[B](from)
}

type sourceFunc[B any] func(position int64) iter.Seq2[B, error]

func (f sourceFunc[B]) From(position int64) iter.Seq2[B, error] { return f(position) }

// whole returns the data with the examples that a training leaves out. A pipeline that lacks them is an error.
func whole[B any](data Source[B]) Source[B] {
	if isNil(data) {
		return data
	}
	if plain, ok := data.(Data[B]); ok {
		return Data[B](abilities.Complete(iter.Seq2[B, error](plain)))
	}
	return From(abilities.WholeFrom(data))
}

// measures reports whether there are steps and none trains.
func measures[S, B any](tasks []Task[S, B]) (all bool) {
	for i := range tasks {
		if t := &tasks[i]; t.steps && !t.measures {
			return false
		} else if t.steps {
			all = true
		}
	}
	return all
}

func isNil[B any](data Source[B]) bool {
	d, plain := data.(Data[B])
	return data == nil || plain && d == nil
}

// epochsOf yields the batches of a run and whether each is the last of its epoch. Without an Until, it leaves a source
// after its first epoch. With an Until in epochs, it asks an ended source again.
type epochsOf[B any] struct {
	source Source[B]
	from   Elapsed
	until  Period
	// ahead: a batch that does not know whether it ends its epoch waits for the next one.
	ahead bool
	early *early
	// newest receives each batch, because copies cost time.
	newest *B
}

// early has what a source shares with its run, which an abandoned source must not hold.
type early struct {
	asked atomic.Bool // the source was asked for it
	taken bool        // it was taken, and the previous one is yielded
	skips atomic.Bool // batches are left out
	// uncounted is the number of passes left out, if the earlier run counted no epochs.
	uncounted int64
}

func (e epochsOf[B]) all(yield func(last bool, err error) bool) {
	plain, isPlain := e.source.(Data[B])
	again := byEpochs(e.until)
	p := pass[B]{newest: e.newest, ahead: e.ahead, once: e.until == nil && !isPlain, plain: isPlain, place: placeOf(e.newest), yield: yield}
	p.ahead = p.ahead || p.once && p.place != nil
	if p.early = e.early; p.early == nil {
		p.early = new(early)
	}
	if p.once && e.from.Epochs > 0 {
		return
	}
	if isPlain {
		p.skip = e.from.Steps
		p.early.skips.Store(p.skip > 0)
	}
	for {
		batches, taken, skip := iter.Seq2[B, error](plain), p.taken, p.skip
		if !isPlain {
			batches = e.source.From(e.from.Steps + taken)
		}
		if batches == nil {
			yield(false, fmt.Errorf("the source returned no iterator for position %d", e.from.Steps+taken))
			return
		}
		p.over(batches)
		p.again = isPlain
		nothing := p.taken == taken && p.skip == skip
		if p.taken == taken && !p.stopped && e.from.Epochs == 0 {
			p.early.uncounted++
		}
		switch {
		case p.stopped:
			return
		case p.skip > 0 && (!again || nothing):
			yield(false, errSkipped(e.from.Steps-p.skip, e.from.Steps))
			return
		case !again || nothing || p.skip == 0 && p.taken == 0 && (Elapsed{Epochs: p.early.uncounted}).Reached(e.until):
			return
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
	plain   bool // the end of the iterator ends the epoch
	once    bool // it ends with the epoch
	stopped bool
	again   bool // the iterator begins another time
	early   *early
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
		p.early.skips.Store(false)
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
			p.early.asked.Store(false)
		}
		before := epoch
		last, known := false, false
		if holds {
			p.held = *p.newest
		}
		*p.newest = batch // a loop variable would be allocated
		if p.place != nil && err == nil {
			epoch, last, known = p.place()
			if s, ok := any(p.newest).(abilities.Shuffled); ok && p.again && epoch == 0 && s.Shuffled() {
				err = errSameEpoch
			}
			p.again = false
		}
		if holds {
			*p.newest, p.early.taken = p.held, err == nil
			if !p.give(err == nil && epoch != before, nil) {
				return
			}
			*p.newest, p.early.taken = batch, false
		}
		if err == nil {
			p.taken++
		}
		if holds = p.ahead && err == nil && !last && (p.plain || !known); holds {
			p.early.asked.Store(true)
		} else if !p.give(last, err) {
			return
		}
	}
	if holds {
		p.early.asked.Store(false)
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

var errNoData = errors.New("no data given")
