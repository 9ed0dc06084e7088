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
	seen              seen
	reason            Reason
	stop              error // the first wish to stop
	begun             bool  // the first batch is there
	over              bool  // no batch is wanted any more
	failure           error // of a turn, or of the data
	taken             int64 // batches of the data
	nextIsTaken       bool  // the last of them is for the turn behind this one
	changed           bool  // a task of the present turn did its work
	partial           bool  // the run ended in the middle of a turn that counts
	entries           entries
	blocks            blocks[B]
	// activity is what the run is at, for the error of a panic: it is set before each call into other people's code.
	activity  Activity
	place     string // "at the start: " or "at the end: "
	observers []Observer
}

// seen is the last whole turn as each saw it that is asked in turns: tasks and callbacks take time, and a schedule must be
// asked about one line of time without a gap.
type seen struct{ tasks, callbacks, history Elapsed }

func (r *run[S, B]) start() error {
	r.place = "at the start: "
	defer func() { r.place = "" }()
	r.history.restrict(r.bounds)
	r.startTasks()
	r.entries.start(r.beside, len(r.tasks))
	r.untilTimed = r.until != nil && timed(r.until)
	r.timed = r.needsClock()
	r.at(Activity{name: "block size"})
	if err := r.shielded(func() error { r.startBlocks(); return nil }); err != nil {
		return err
	}
	r.clock = newClock(r.from)
	if r.elapsed.Date == 0 {
		r.elapsed.Date = r.clock.date // not a date of long ago, from which all dates since would be due at once
	}
	r.seen = seen{r.elapsed, r.elapsed, r.elapsed}
	return r.startBeside()
}

func (r *run[S, B]) startBeside() error {
	from := r.beginning()
	from.state = StateAt(&r.turn.State)
	for i := range r.beside {
		b := &r.beside[i]
		r.at(Activity{beside: b})
		var wrong error
		if err := r.shielded(func() error { wrong = b.start(from); return nil }); err != nil {
			return err
		}
		switch {
		case isStop(wrong): // the run that this one goes on from had come to its end
			if r.stop == nil {
				r.stop = &placed{fmt.Sprintf("step %d: %s", r.elapsed.Steps, b.String()), wrong}
			}
		case wrong != nil:
			r.reason = Failed
			return r.wrap(wrong)
		}
		if o, ok := b.attendant.(Observer); ok {
			r.observers = append(r.observers, o)
		}
	}
	return nil
}

// startTasks makes what tasks keep in a run.
func (r *run[S, B]) startTasks() {
	for i := range r.tasks {
		if r.tasks[i].start != nil {
			r.tasks = slices.Clone(r.tasks) // the loop's own serve other runs
			r.tasks[i].do = r.tasks[i].start()
		}
	}
}

// needsClock tells whether anybody can see at what time a turn begins. What logs are committed with is asked then.
func (r *run[S, B]) needsClock() bool {
	return r.untilTimed || r.keep.needs().clock ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return !t.ignoresTime || t.when.needs().clock })
}

// turns makes one turn a batch.
func (r *run[S, B]) turns(ctx context.Context, data Data[B]) error {
	if r.stop == nil && r.endedBefore() {
		r.stop = r.endedBy
	}
	if r.stop != nil {
		r.reason = Stopped
		return nil
	}
	if r.until != nil && r.elapsed.Reached(r.until) {
		r.reason = UntilReached
		return nil
	}
	err := r.eachBatch(ctx, data)
	if err == nil {
		err = r.shielded(func() error { return r.close(ctx) })
	}
	if r.blocks.waiting() {
		err = r.shielded(func() error { return r.flushBeforeError(ctx, err) })
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

// endedBefore tells whether [Ended] says that the run which this one goes on from had come to its end, and was to.
func (r *run[S, B]) endedBefore() bool {
	until := ""
	if r.until != nil {
		until = r.until.String()
	}
	return r.endedBy != nil && r.endedUntil == until
}

// await waits for steps that may go on.
func (r *run[S, B]) await(ctx context.Context, err error) error {
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.await == nil {
			continue
		}
		r.at(Activity{when: &t.when, name: t.name})
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
func (r *run[S, B]) shielded(f func() error) error { return r.located(Shield(f)) }

func (r *run[S, B]) located(err error) error {
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
		r.elapsed = r.seen.tasks // only what is in the state is counted
	case r.seen.history.Steps < r.elapsed.Steps: // it failed before its row was committed
		r.elapsed = r.clock.at(r.elapsed)
		r.keepTurn(r.elapsed.Samples - r.seen.tasks.Samples)
	case r.seen.tasks.Steps == r.elapsed.Steps && r.turn.Logs.Len() > 0: // at the start or the end of the run
		r.history.Commit(r.clock.at(r.elapsed), r.turn.Logs, 0)
	}
}

// eachBatch makes a turn of each batch. Each end reaches the source in the same way, by a batch that is not asked
// for: so it is here that a failed turn stands, and not what the source makes of it.
func (r *run[S, B]) eachBatch(ctx context.Context, data Data[B]) error {
	if ctx.Err() != nil {
		_, err := r.cancelled(ctx)
		return err
	}
	r.at(atData)
	s := &source[B]{free: ctx.Done() == nil}
	s.turn = func(batch B, err error) (more bool) {
		whole := false
		defer func() {
			if !whole {
				r.over, r.failure = true, r.located(caught(recover()))
			}
			r.at(atData) // also where it learns that the run is over: what it then does is not the last task's
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
		return r.located(err)
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
	r.at(Activity{name: "cancelled"})
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
		r.at(atData)
	}
	samples := int64(1)
	if r.size != nil {
		if samples = int64(r.size()); samples < 0 {
			r.reason = Failed
			return false, r.wrap(errNegative(samples))
		}
	}
	return r.makeTurn(ctx, samples)
}

// finish ends what runs beside the run, the last first, and joins the errors to the run's.
func (r *run[S, B]) finish(ctx context.Context, err error) error {
	r.place = "at the end: "
	ending := Ending{Report: r.report(), Reason: r.reason, Err: err, Partial: r.partial}
	for i := range slices.Backward(r.beside) {
		b := &r.beside[i]
		if !b.started() {
			continue
		}
		r.at(Activity{beside: b})
		// A cancelled context must not keep a callback from closing what it has open.
		endErr := Shield(func() error { return b.end(context.WithoutCancel(ctx), ending) })
		if endErr == nil {
			continue
		}
		err = errors.Join(err, r.errorAt(b.String(), endErr))
		if r.reason != Cancelled {
			r.reason = Failed
		}
	}
	return err
}
