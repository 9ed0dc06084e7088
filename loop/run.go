package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/shield"
)

// run is one run of a loop.
type run[S, B any] struct {
	settings
	tasks   []Task[S, B]
	turn    Turn[S, B]
	history *History
	latest  Logs // the newest value of each name, if there are callbacks
	clock   clock
	// readsClock is false where the time of a turn cannot be observed: reading the clock takes longer than the rest of
	// it.
	readsClock, untilByClock bool
	size                     func() int // of the batch of the turn, nil if it counts as one
	elapsed                  Elapsed
	lastTurn                 lastTurn
	reason                   Reason
	stop                     error // the first request to stop
	begun                    bool  // the first batch was taken
	endsEpoch                bool  // the batch of the turn is the last of its epoch
	over                     bool  // no further batch is taken
	failure                  error // of a turn, or of the data
	taken                    int64 // batches from the data
	nextTaken                bool  // the last of them is for the turn behind this one
	changed                  bool  // a task of the present turn has run
	partial                  bool  // the run ended in the middle of a turn that counts
	expected                 expectedEntries
	blocks                   blocks[B]
	party                    *party // nil where this process is alone
	made                     B      // where processes agree, the batch of the newest turn: others may have been taken
	// activity is set before each call of code that is not the loop's, for the error of a panic in it.
	activity  Activity
	stage     string // "at the start: " or "at the end: "
	observers []*hook
}

// lastTurn is what had elapsed in the last whole turn when the tasks, the callbacks and the history were asked: tasks
// and callbacks take time, and each schedule must be asked about one line of time without gaps.
type lastTurn struct{ tasks, callbacks, history Elapsed }

func (r *run[S, B]) start() error {
	r.stage = "at the start: "
	defer func() { r.stage = "" }()
	r.history.restrict(r.bounds)
	if err := r.startTasks(); err != nil {
		return err
	}
	r.expected.start(r.hooks, len(r.tasks))
	r.untilByClock = r.until != nil && byClock(r.until)
	r.readsClock = r.needsClock()
	r.at(Activity{name: "block size"})
	if err := r.shielded(func() error { r.startBlocks(); return nil }); err != nil {
		return err
	}
	if r.party == nil {
		r.clock = newClock(r.from)
	}
	r.elapsed.Date = cmp.Or(r.elapsed.Date, r.clock.date) // or all dates since 1970 would be due at once
	r.lastTurn = lastTurn{r.elapsed, r.elapsed, r.elapsed}
	return r.startHooks()
}

func (r *run[S, B]) startHooks() error {
	from := r.beginning()
	if r.party != nil {
		from.Job = r.party.Job
	}
	from.state = StateAt(&r.turn.State)
	for i := range r.hooks {
		h := &r.hooks[i]
		if h.AtRank0 && r.party != nil && r.party.rank != 0 {
			continue
		}
		var failure error
		if err := r.shielded(func() error { r.at(Activity{hook: h}); failure = h.start(from); return nil }); err != nil {
			return err
		}
		switch {
		case isStop(failure): // the run that this one resumes was over
			if r.stop == nil {
				r.stop = &runError{fmt.Sprintf("step %d: %s", r.elapsed.Steps, h.String()), failure}
			}
		case failure != nil:
			r.reason = Failed
			return r.wrap(failure)
		}
		if h.observer != nil {
			r.observers = append(r.observers, h)
		}
	}
	return nil
}

// startTasks makes the functions of the tasks that keep something in a run.
func (r *run[S, B]) startTasks() error {
	for i := range r.tasks {
		if r.tasks[i].start == nil {
			continue
		}
		r.tasks = slices.Clone(r.tasks) // those of the loop serve other runs too
		t := &r.tasks[i]
		r.at(Activity{when: &t.when, name: t.name})
		if err := r.shielded(func() error { t.do = t.start(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// needsClock reports whether the time at which a turn begins can be observed. (Logs are committed with the time after
// the tasks.)
func (r *run[S, B]) needsClock() bool {
	return r.untilByClock || r.keep.needs().clock ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return !t.ignoresTime || t.when.needs().clock })
}

// makeTurns makes one turn for each batch.
func (r *run[S, B]) makeTurns(ctx context.Context, data Source[B]) error {
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
	if r.party != nil {
		err = r.endTurns(err)
	} else {
		err = r.endTurnsAlone(ctx, err)
	}
	if err != nil {
		if again := r.shielded(func() error { r.countFailedTurn(); return nil }); again != nil { // a schedule can panic there
			err = errors.Join(err, again)
		}
	}
	r.elapsed = r.clock.at(r.elapsed)
	return err
}

func (r *run[S, B]) endTurnsAlone(ctx context.Context, err error) error {
	if err == nil {
		err = r.shielded(func() error { return r.completeRun(ctx) })
	}
	if r.blocks.pending() {
		err = r.shielded(func() error { return r.flushBeforeError(ctx, err) })
	}
	return r.await(ctx, err)
}

// endedBefore reports whether the run that this one resumes was over, by [Ended].
func (r *run[S, B]) endedBefore() bool {
	until := ""
	if r.until != nil {
		until = r.until.String()
	}
	return r.endedBy != nil && r.endedUntil == until
}

// await waits for steps that may still be running.
func (r *run[S, B]) await(ctx context.Context, err error) error {
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.await == nil {
			continue
		}
		failure := r.shielded(func() error {
			r.at(Activity{when: &t.when, name: t.name})
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

// shielded makes a panic an error that names the activity.
func (r *run[S, B]) shielded(f func() error) error { return r.located(Shield(f)) }

func (r *run[S, B]) located(err error) error {
	if p, ok := err.(*PanicError); ok {
		r.reason = Failed
		if fault, ok := p.Value.(*scheduleFault); ok {
			return r.errorAt("schedule "+fault.schedule, fault.PanicError)
		}
		return r.wrap(p)
	}
	return err
}

// countFailedTurn counts a turn that failed if it is in the state.
func (r *run[S, B]) countFailedTurn() {
	r.noteLatest(r.turn.Logs)
	r.partial = r.changed
	switch {
	case !r.changed:
		r.elapsed = r.lastTurn.tasks // only what is in the state is counted
	case r.lastTurn.history.Steps < r.elapsed.Steps: // it failed before its row was committed
		r.elapsed = r.clock.at(r.elapsed)
		r.keepTurn(r.elapsed.Samples - r.lastTurn.tasks.Samples)
	case r.lastTurn.tasks.Steps == r.elapsed.Steps && r.turn.Logs.Len() > 0: // at the start or the end of the run
		r.history.Commit(r.clock.at(r.elapsed), r.turn.Logs, 0)
	}
}

// eachBatch makes a turn for each batch. Whatever ends the run, the source only sees that no further batch is asked
// for; the error of a failed turn is kept here and does not pass through the source.
func (r *run[S, B]) eachBatch(ctx context.Context, data Source[B]) error {
	cancelled := func() error { _, err := r.cancelled(ctx); return err }
	if r.party != nil { // all of them decide how it ends
		ctx = r.party.ctx
		cancelled = func() error { return nil }
	}
	if ctx.Err() != nil {
		return r.shielded(cancelled)
	}
	if err := r.shielded(func() error { r.at(atData); return nil }); err != nil {
		return err
	}
	s := &source[B]{uncancelable: ctx.Done() == nil}
	s.turn = func(batch B, last bool, err error) (more bool) {
		r.endsEpoch = last
		whole := false
		defer func() {
			if !whole {
				r.over, r.failure = true, r.located(shield.Caught(recover()))
			}
			r.at(atData) // also at the end of the run: what the source then does is not the last task's
			s.enter()
		}()
		more = r.receive(ctx, batch, err)
		whole = true
		return more
	}
	err, left := s.wait(ctx, startShielded(func() error { return s.all(r.epochs(data)) }))
	switch {
	case left && !r.over:
		if r.failure = r.shielded(cancelled); r.party != nil {
			r.party.left = true
			return nil
		}
	case r.failure == nil:
		return r.located(err)
	}
	if left && r.failure != nil {
		return fmt.Errorf("%w; %w", r.failure, ErrSourceLeft)
	}
	return r.failure
}

// epochs is the data of the run, from where it begins.
func (r *run[S, B]) epochs(data Source[B]) epochsOf[B] {
	return epochsOf[B]{data, r.from, r.until, r.needsEpochs()}
}

// needsEpochs reports whether anything in the run is due by epochs.
func (r *run[S, B]) needsEpochs() bool {
	return byEpochs(r.until) || r.keep.needs().epochs ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return t.when.needs().epochs }) ||
		slices.ContainsFunc(r.hooks, func(h hook) bool { return h.When.needs().epochs })
}

// receive handles what the data yields: a batch or a failure. A batch has its turn even if the context ended meanwhile:
// the data's position is then that of the state.
func (r *run[S, B]) receive(ctx context.Context, batch B, failure error) (more bool) {
	if r.party != nil {
		return r.receiveAgreed(batch, failure)
	}
	end, err := false, error(nil)
	if failure == nil {
		r.taken++
		r.turn.Batch = batch
		if !r.begun {
			end, err = r.begin(ctx)
		}
		if !end && err == nil {
			end, err = r.makeTurn(ctx)
		}
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

// completeRun makes the pending steps and what is due at the end of a run that did not fail.
func (r *run[S, B]) completeRun(ctx context.Context) error {
	if r.reason == DataEnded {
		end := r.flush
		if ctx.Err() != nil {
			end = r.cancelled // the data may have ended because the context did
		}
		if _, err := end(ctx); err != nil {
			return err
		}
	}
	if !r.begun {
		return nil
	}
	_, err := r.runAtEdge(ctx, Schedule.endsAt)
	return err
}

// cancelled ends the run after the pending steps; end reports that it is over.
func (r *run[S, B]) cancelled(ctx context.Context) (end bool, err error) {
	// The pending batches came before: without blocks, their steps would have been made.
	if end, err := r.flush(ctx); end || err != nil {
		return end, err
	}
	r.reason = Cancelled
	r.at(Activity{name: "cancelled"})
	return true, r.wrap(context.Cause(ctx))
}

// begin runs what is due at the start of the run; end reports that it has no turn.
func (r *run[S, B]) begin(ctx context.Context) (end bool, err error) {
	r.begun = true
	stop, err := r.runAtEdge(ctx, Schedule.startsAt)
	if err != nil {
		return false, err
	}
	if r.party != nil {
		stop, err = r.agreeOnTurn(stop)
	}
	if err != nil {
		return false, err
	}
	if stop {
		r.reason = Stopped
		return true, nil
	}
	r.at(atData)
	return false, nil
}

// endHooks ends the hooks in the reverse order, and joins their errors to that of the run.
func (r *run[S, B]) endHooks(ctx context.Context, err error) error {
	r.stage = "at the end: "
	ending := Ending{Report: r.report(), Reason: r.reason, Err: err, Partial: r.partial}
	for i := range slices.Backward(r.hooks) {
		h := &r.hooks[i]
		if !h.started() {
			continue
		}
		endErr := Shield(func() error {
			r.at(Activity{hook: h})
			// A cancelled context must not keep a callback from closing what it has open.
			return h.end(context.WithoutCancel(ctx), ending)
		})
		if endErr == nil {
			continue
		}
		err = errors.Join(err, r.errorAt(h.String(), endErr))
		if r.reason != Cancelled {
			r.reason = Failed
		}
	}
	return err
}
