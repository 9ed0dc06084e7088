package loop

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
)

// Source is data that a run can begin at any position. The position is the number of batches that were taken since the
// beginning of the data, over all epochs: the steps of the run ([Elapsed].Steps).
//
// A set's batches are one ([data.Set.Batches]), and so is a plain iterator ([Data]), which is skipped through, and a
// function ([From]).
//
// [data.Set.Batches]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Set.Batches
type Source[B any] interface {
	// From returns the batches from a position on, each with a nil error. They end with their epoch, or go on into
	// the next one if the batches say where an epoch ends (see [Stepper]). An error ends the run.
	From(position int64) iter.Seq2[B, error]
}

// Data is a plain iterator as a [Source]. A run that begins at a later position ranges over it from its start and
// leaves out the batches before ([Beginning].Skipped counts them). Where [Until] is in [Epochs], the run ranges over it
// once for each epoch, so it must begin anew each time.
//
// A batch must not change until its step is over; a block of steps holds several at once. Package data has functions to
// prefetch, change or shorten an iterator.
//
// An iterator runs on a goroutine of the run. If it waits for something, it should end when the run's context ends;
// otherwise the run leaves it behind (see [Loop.Run]).
type Data[B any] func(yield func(B, error) bool)

// From leaves out the first batches, as many as position says. Fewer batches than that are an error.
func (d Data[B]) From(position int64) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var batch, none B
		p := pass[B]{newest: &batch, skip: position, yield: func(_ bool, err error) bool { return yield(batch, err) }}
		if p.over(iter.Seq2[B, error](d)); p.skip > 0 && !p.stopped {
			yield(none, errSkipped(position-p.skip, position))
		}
	}
}

// From is a [Source] made of a function that returns the batches from a position on, for data that the caller
// positions: a pipeline over a set, a file with an index, an environment.
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

// whole is data without the examples that a training leaves out: see [data.Set.Batches]. Other data is unchanged.
//
// [data.Set.Batches]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Set.Batches
func whole[B any](data Source[B]) Source[B] {
	if w, ok := data.(abilities.Whole[B]); ok {
		return From(w.WholeFrom)
	}
	return data
}

// measures reports whether all steps of the tasks train nothing, and there is one.
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

// isNil reports whether no data was given.
func isNil[B any](data Source[B]) bool {
	d, plain := data.(Data[B])
	return data == nil || plain && d == nil
}

// epochsOf yields the batches of a run and whether each is the last of its epoch.
//
// Without an Until, the run makes one pass: a source that goes on is left after its first epoch. With one, the run goes
// on while the source does; where Until is in epochs, it asks the source again when it ends.
type epochsOf[B any] struct {
	source Source[B]
	from   Elapsed
	until  Period
	// ahead: something is due by epochs, so a batch that does not know whether it ends its epoch is taken one ahead.
	ahead bool
	early *early // nil where nobody looks
	// newest is where each batch is put before it is yielded: batches can be large, and each copy costs time.
	newest *B
}

// early is how a batch is taken before the step of the one before it, to know whether that ends its epoch. It is no
// part of the run, which a source that is left behind must not hold.
type early struct {
	asked atomic.Bool // the source is asked for it
	taken bool        // it is there, while the one before it is yielded
}

func (e epochsOf[B]) all(yield func(last bool, err error) bool) {
	plain, isPlain := e.source.(Data[B])
	again := byEpochs(e.until)
	p := pass[B]{newest: e.newest, ahead: e.ahead, once: e.until == nil && !isPlain, plain: isPlain, place: placeOf(e.newest), yield: yield}
	p.ahead = p.ahead || p.once && p.place != nil
	if p.early = e.early; p.early == nil {
		p.early = new(early)
	}
	if p.once && e.from.Epochs > 0 { // the earlier run has made its pass
		return
	}
	if isPlain {
		p.skip = e.from.Steps
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
		nothing := p.taken == taken && p.skip == skip
		switch {
		case p.stopped:
			return
		case p.skip > 0 && (!again || nothing):
			yield(false, errSkipped(e.from.Steps-p.skip, e.from.Steps))
			return
		case !again || nothing:
			return
		}
	}
}

func errSkipped(had, position int64) error {
	return fmt.Errorf("the data ended after %d batches, and the run goes on after %d: give it the data of the earlier run", had, position)
}

// pass ranges over iterators.
type pass[B any] struct {
	place   func() (epoch int64, last, known bool) // of newest, nil if the batches do not know
	yield   func(last bool, err error) bool
	newest  *B    // the batch that is yielded
	skip    int64 // so many batches are left out
	taken   int64
	ahead   bool
	plain   bool // the end of the iterator ends the epoch, whatever its last batch knows
	once    bool // it ends with the epoch
	stopped bool // no further batch is wanted
	early   *early
	held    B // where one is taken ahead: the batch before it
}

// over ranges over one iterator.
func (p *pass[B]) over(batches iter.Seq2[B, error]) {
	if p.place != nil || p.ahead {
		p.overEpochs(batches)
		return
	}
	for batch, err := range batches {
		switch {
		case err != nil:
		case p.skip > 0:
			p.skip--
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

// overEpochs is over where it matters which batch is the last of its epoch.
func (p *pass[B]) overEpochs(batches iter.Seq2[B, error]) {
	var epoch int64
	holds := false // newest is not yielded yet, because its next one is needed
	for batch, err := range batches {
		if p.skip > 0 && err == nil {
			p.skip--
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
		*p.newest = batch // a variable of the loop would be allocated for each batch
		if p.place != nil && err == nil {
			epoch, last, known = p.place()
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

// give yields the newest batch and reports whether another one is wanted.
func (p *pass[B]) give(last bool, err error) bool {
	p.stopped = !p.yield(last, err) || last && p.once
	return !p.stopped
}

// placeOf returns what asks *batch for its place in an epoch, nil if batches of this type do not know.
func placeOf[B any](batch *B) func() (epoch int64, last, known bool) {
	// The pointer as an interface costs no allocation; the value would.
	if e, ok := any(batch).(abilities.InEpoch); ok {
		return e.InEpoch
	}
	if t := reflect.TypeFor[B](); t.Kind() != reflect.Interface && !t.Implements(reflect.TypeFor[abilities.InEpoch]()) {
		return nil
	}
	return func() (epoch int64, last, known bool) { // B is a pointer, or an interface
		if e, ok := any(*batch).(abilities.InEpoch); ok {
			return e.InEpoch()
		}
		return 0, false, false
	}
}

var errNoData = errors.New("no data given")
