package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// run is one run of a loop.
type run[S, B any] struct {
	settings
	tasks   []Task[S, B]
	turn    Turn[S, B]
	history *History
	latest  Logs // the newest value of each name, if a watcher may ask
	clock   clock
	// timed is false where nobody can see the time of a turn: reading the clock takes longer than the rest of it.
	timed, untilTimed bool
	size              func() int // of the batch of the turn, nil if it counts as one
	elapsed           Elapsed
	// before is the last whole turn as its tasks saw it, watched as its watchers did: tasks take time, and a schedule
	// must be asked about one line of time without a gap.
	before, watched Elapsed
	kept            Elapsed // the last whole turn as the history saw it
	reason          Reason
	stop            error // the first wish to stop
	begun           bool  // the first batch is there
	over            bool  // no batch is wanted any more
	failure         error // of a turn, or of the data
	taken           int64 // batches of the data
	holds           bool  // one of them is for a turn behind this one
	changed         bool  // a task of the present turn did its work
	partial         bool  // the run ended in the middle of a turn that counts
	entries         entries
	blocks          blocks[B]
	// doing says what the run is at, for the error of a panic: it is set before each call into other people's code.
	doing  doing
	place  string // "at the start: " or "at the end: "
	noters []noter
	dog    *dog
}

func (r *run[S, B]) start() error {
	r.place = "at the start: "
	defer func() { r.place = "" }()
	r.history.restrict(r.bounds)
	r.sortWatchers()
	r.entries.start(r.watchers, len(r.tasks))
	r.untilTimed = r.until != nil && timed(r.until)
	r.timed = r.needsClock()
	r.at(doing{name: "block size"})
	if err := r.shielded(func() error { r.startBlocks(); return nil }); err != nil {
		return err
	}
	r.clock = newClock(r.from)
	if r.elapsed.Date == 0 {
		r.elapsed.Date = r.clock.date // not a date of long ago, from which all dates since would be due at once
	}
	r.before, r.watched, r.kept = r.elapsed, r.elapsed, r.elapsed
	if r.watchdog != nil {
		r.dog = r.watchdog.start()
		r.noters = append(r.noters, r.dog)
	}
	for i := range r.watchers {
		w := &r.watchers[i]
		r.at(doing{watch: w})
		if err := r.shielded(func() error { w.it = w.start(); return nil }); err != nil {
			return err
		}
		if w.it == nil {
			r.reason = Failed
			return r.wrap(errors.New("there is no attendant: its start function gave nil"))
		}
		if n, ok := w.it.(noter); ok {
			r.noters = append(r.noters, n)
		}
	}
	return nil
}

// sortWatchers puts those that look first in front, and those that look last behind; the list is the run's own.
func (r *run[S, B]) sortWatchers() {
	rank := func(w watching) int {
		switch {
		case w.first:
			return -1
		case w.last:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.watchers, func(a, b watching) int { return rank(a) - rank(b) })
}

// needsClock tells whether anybody can see at what time a turn begins. What logs are committed with is asked then.
func (r *run[S, B]) needsClock() bool {
	return r.untilTimed || r.keep.needs().clock ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return !t.blind || t.when.needs().clock })
}

// turns makes one turn a batch.
func (r *run[S, B]) turns(ctx context.Context, data Data[B]) error {
	if r.stop = r.stoppedBefore(); r.stop != nil {
		r.reason = Stopped
		return nil
	}
	if r.until != nil && r.elapsed.Reached(r.until) {
		r.reason = UntilReached
		return nil
	}
	err := r.deal(ctx, data)
	if err == nil {
		err = r.shielded(func() error { return r.close(ctx) })
	}
	if r.blocks.waiting() {
		err = r.shielded(func() error { return r.late(ctx, err) })
	}
	err = r.await(ctx, err)
	if err != nil {
		if again := r.shielded(func() error { r.abandon(); return nil }); again != nil { // a schedule can panic there
			err = errors.Join(err, again)
		}
	}
	r.elapsed = r.clock.at(r.elapsed)
	return err
}

// stoppedBefore is what had stopped the run that this one goes on from, and still does; nil if nothing did.
func (r *run[S, B]) stoppedBefore() error {
	for i := range r.watchers {
		w := &r.watchers[i]
		if o, ok := w.it.(interface{ over() error }); ok {
			if err := o.over(); err != nil {
				return r.errorAt(w.label(), err)
			}
		}
	}
	until := ""
	if r.until != nil {
		until = r.until.String()
	}
	if r.endedBy != nil && r.endedUntil == until {
		return r.endedBy
	}
	return nil
}

// await waits for steps that may go on.
func (r *run[S, B]) await(ctx context.Context, err error) error {
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.await == nil {
			continue
		}
		r.at(doing{when: &t.when, name: t.name})
		failure := r.shielded(func() error {
			if err := t.await.Await(context.WithoutCancel(ctx), r.turn.State); err != nil {
				return r.wrap(err)
			}
			return nil
		})
		if failure != nil && !errors.Is(err, failure) {
			r.reason = Failed
			err = errors.Join(err, failure)
		}
	}
	return err
}

// shielded makes a panic an error that says what the run was at.
func (r *run[S, B]) shielded(f func() error) error { return r.told(shielded(f)) }

func (r *run[S, B]) told(err error) error {
	if p, ok := err.(*PanicError); ok {
		r.reason = Failed
		if fault, ok := p.Value.(*askFault); ok {
			return r.errorAt("schedule "+fault.schedule, fault.PanicError)
		}
		return r.wrap(p)
	}
	return err
}

// abandon decides what becomes of a turn that failed.
func (r *run[S, B]) abandon() {
	r.noteLatest(r.turn.Logs)
	r.partial = r.changed
	switch {
	case !r.changed:
		r.elapsed = r.before // only what is in the state is counted
	case r.kept.Steps < r.elapsed.Steps: // it failed before its row was committed
		r.elapsed = r.clock.at(r.elapsed)
		r.keepTurn(r.elapsed.Samples - r.before.Samples)
	case r.before.Steps == r.elapsed.Steps && r.turn.Logs.Len() > 0: // at the start or the end of the run
		r.history.Commit(r.clock.at(r.elapsed), r.turn.Logs, 0)
	}
}

// deal makes a turn of each batch. Each end is one that the source is told in the same way, by a batch that is not asked
// for: so it is here that a failed turn stands, and not what the source makes of it.
func (r *run[S, B]) deal(ctx context.Context, data Data[B]) error {
	if ctx.Err() != nil {
		_, err := r.cancelled(ctx)
		return err
	}
	r.at(doingData)
	s := &source[B]{free: ctx.Done() == nil}
	s.turn = func(batch B, err error) (more bool) {
		whole := false
		defer func() {
			if !whole {
				r.over, r.failure = true, r.told(caught(recover()))
			}
			r.at(doingData) // also where it is told that the run is over: what it then does is not the last task's
			s.enter()
		}()
		more = r.take(ctx, batch, err)
		whole = true
		return more
	}
	err, left := s.wait(ctx, begun(func() error { return s.all(data) }))
	switch {
	case left && !r.over:
		r.failure = r.shielded(func() (err error) { _, err = r.cancelled(ctx); return err })
	case r.failure == nil:
		return r.told(err)
	}
	if left && r.failure != nil {
		return fmt.Errorf("%w; %w", r.failure, ErrSourceLeft)
	}
	return r.failure
}

// take makes the turn of a batch, or what a failure of the data comes to. A batch that was taken has its turn, also where
// the context ended while it was waited for: the source's place is then that of the state.
func (r *run[S, B]) take(ctx context.Context, batch B, failure error) (more bool) {
	end, err := false, error(nil)
	if failure == nil {
		r.taken++
		r.turn.Batch = batch
		end, err = r.next(ctx)
	}
	switch {
	case end || err != nil:
	case ctx.Err() != nil:
		end, err = r.cancelled(ctx)
	case failure != nil:
		r.reason = Failed
		err = r.wrap(failure)
	}
	if end || err != nil {
		r.over, r.failure = true, err
		return false
	}
	return true
}

// close makes the end of a run that did not fail.
func (r *run[S, B]) close(ctx context.Context) error {
	if r.reason == DataEnded {
		end := r.flush
		if ctx.Err() != nil {
			end = r.cancelled // data that ends because the context did is a cancelled run, not a finished one
		}
		if _, err := end(ctx); err != nil {
			return err
		}
	}
	if !r.begun {
		return nil
	}
	_, err := r.marked(ctx, Schedule.endsAt)
	return err
}

// cancelled ends the run at its border; end tells that it was over before the context was.
func (r *run[S, B]) cancelled(ctx context.Context) (end bool, err error) {
	// The batches that wait came before: without blocks, their steps would be made.
	if end, err := r.flush(ctx); end || err != nil {
		return end, err
	}
	r.reason = Cancelled
	r.at(doing{name: "cancelled"})
	return true, r.wrap(context.Cause(ctx))
}

// next makes the turn of a batch; end tells that it was the last one.
func (r *run[S, B]) next(ctx context.Context) (end bool, err error) {
	if !r.begun {
		r.begun = true
		stop, err := r.marked(ctx, Schedule.startsAt)
		if err != nil {
			return false, err
		}
		if stop {
			r.reason = Stopped
			return true, nil
		}
		r.at(doingData)
	}
	samples := int64(1)
	if r.size != nil {
		if samples = int64(r.size()); samples < 0 {
			r.reason = Failed
			return false, r.wrap(errNegative(samples))
		}
	}
	if r.blocks.on {
		return r.nextOfBlock(ctx, samples)
	}
	r.count(samples)
	now := r.elapsed
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	stop := false
	for i := range r.tasks {
		if t := &r.tasks[i]; t.when.Due(r.before, now) {
			if err := r.doTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	if err := r.look(ctx, samples, &stop); err != nil {
		return false, err
	}
	r.before = now
	return r.ended(stop), nil
}

// finish tells all attendants that the run is over, the last first, and joins their errors to the run's.
func (r *run[S, B]) finish(ctx context.Context, err error) error {
	r.place = "at the end: "
	ending := Ending{Report: r.report(), Reason: r.reason, Err: err, Partial: r.partial}
	for i := range slices.Backward(r.watchers) {
		w := &r.watchers[i]
		if w.it == nil {
			continue // it was not started
		}
		r.at(doing{watch: w})
		// A cancelled context must not keep an attendant from closing what it has open.
		endErr := shielded(func() error { return w.it.End(context.WithoutCancel(ctx), ending) })
		if endErr == nil {
			continue
		}
		err = errors.Join(err, r.errorAt(w.label(), endErr))
		if r.reason != Cancelled {
			r.reason = Failed
		}
	}
	r.dog.end()
	return err
}
