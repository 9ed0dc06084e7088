package loop

import (
	"context"
	"errors"
	"time"
)

// makeTurn makes the turn of a batch, whose examples it counts, or adds the batch to a block if its turn has nothing
// but a step that can be made later; end reports that it was the last turn.
func (r *run[S, B]) makeTurn(ctx context.Context) (end bool, err error) {
	samples := int64(1)
	if r.size != nil {
		if samples = int64(r.size()); samples < 0 {
			err = r.wrap(errNegative(samples))
			if r.party != nil {
				r.party.failed, r.taken = err, r.taken-1
				return false, nil
			}
			r.reason = Failed
			return false, err
		}
	}
	b := &r.blocks
	last, task := r.lastTurn.tasks, -1
	if b.pending() {
		last = b.turns[len(b.turns)-1].elapsed
	}
	now := r.count(last, samples)
	if b.on {
		task = r.blockOf(last, now)
	}
	if r.party != nil {
		r.party.samples = now.Samples
		if task < 0 || b.pending() && task != b.current || r.dueBefore(task, last, now) {
			if end, err := r.agreeOnBatches(1); end || err != nil {
				return end, err
			}
		}
	}
	if b.pending() && task != b.current {
		batch := r.turn.Batch
		r.nextTaken = true
		if r.party != nil { // all have the batch of this turn, so nothing else would ask whether the block stopped
			r.party.asked = true
		}
		end, err := r.flush(ctx)
		if r.nextTaken = false; end || err != nil {
			return end, err
		}
		r.turn.Batch = batch
		task = r.blockOf(last, now)
	}
	if !b.pending() {
		r.changed, r.elapsed = false, now
		r.turn.Elapsed, r.turn.Logs = now, Logs{}
	}
	stop := false
	if len(b.dueAfter) > 0 {
		b.dueAfter = b.dueAfter[:0]
	}
	for i := range r.tasks {
		switch {
		case !r.tasks[i].when.Due(last, now) || i == task:
		case task >= 0 && i > task:
			b.dueAfter = append(b.dueAfter, i)
		default: // in a turn without a block, or before the block
			if r.party != nil && task >= 0 {
				r.party.asked = true
			}
			if err := r.runTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	if task < 0 {
		return r.afterTasks(ctx, samples, stop)
	}
	if r.party != nil {
		if stop, err = r.agreeOnTurn(stop); err != nil {
			return false, err
		}
		if !b.pending() {
			r.party.gathered = time.Now()
		}
	}
	b.current = task
	b.batches, b.turns = append(b.batches, r.turn.Batch), append(b.turns, pendingTurn{now, samples})
	if stop {
		if _, err = r.flush(ctx); err == nil {
			r.reason = Stopped
		}
		return true, err
	}
	if len(b.dueAfter) == 0 && len(b.batches) < b.tasks[task].limit && !r.tooLong(now.Time-b.turns[0].elapsed.Time) &&
		!now.Reached(r.until) && !r.callbackDue(last, now) &&
		(len(r.expected.expected) == 0 || r.expected.pending > 0) && r.watchedName(r.turn.Logs) == "" {
		return false, nil
	}
	if r.party != nil {
		if end, err := r.agreeOnBatches(0); end || err != nil {
			return end, err
		}
	}
	return r.flush(ctx)
}

// tooLong reports whether a block has waited long enough for batches. Where processes agree, no clock ends it.
func (r *run[S, B]) tooLong(waited time.Duration) bool {
	if r.party != nil {
		return r.party.interrupted
	}
	return waited >= blockTime
}

// dueBefore reports whether a task before that of the block, of which none is pending, is due.
func (r *run[S, B]) dueBefore(task int, last, now Elapsed) bool {
	for i := range max(task, 0) {
		if r.tasks[i].when.Due(last, now) {
			return true
		}
	}
	return false
}

// afterTasks makes the rest of a turn.
func (r *run[S, B]) afterTasks(ctx context.Context, samples int64, stop bool) (end bool, err error) {
	if len(r.hooks) == 0 && r.turn.Logs.Len() == 0 { // nobody reads lastTurn.callbacks
		r.lastTurn.tasks, r.lastTurn.history = r.elapsed, r.elapsed
		return r.concluded(stop)
	}
	tasks := r.elapsed
	if err := r.callHooks(ctx, samples, &stop); err != nil {
		return false, err
	}
	r.lastTurn.tasks = tasks
	return r.concluded(stop)
}

// concluded reports whether a turn whose tasks and callbacks have run was the last one.
func (r *run[S, B]) concluded(stop bool) (end bool, err error) {
	if r.party != nil {
		r.changed, r.made = false, r.turn.Batch
		r.party.asked = r.party.asked || r.party.halted // nothing behind it would ask
		if stop, err = r.agreeOnTurn(stop); err != nil {
			return false, err
		}
	}
	return r.isLast(stop), nil
}

// count is what has elapsed with the turn after last.
func (r *run[S, B]) count(last Elapsed, samples int64) Elapsed {
	if r.endsEpoch {
		last.Epochs++
	}
	if r.readsClock {
		return r.clock.next(last, samples)
	}
	last.Steps++
	last.Samples += samples
	return last
}

// isLast reports whether a turn was the last one, and sets the reason.
func (r *run[S, B]) isLast(stop bool) bool {
	r.changed = false
	if r.untilByClock {
		r.elapsed = r.clock.at(r.elapsed) // the tasks took time
	}
	switch {
	case stop:
		r.reason = Stopped
	case r.nextTaken: // only a time can be reached, and the batch that was taken is to have its turn
		return false
	case r.until != nil && r.elapsed.Reached(r.until):
		r.reason = UntilReached
	default:
		return false
	}
	return true
}

// callHooks makes the changes of a turn, adds it to the history, and calls the callbacks.
func (r *run[S, B]) callHooks(ctx context.Context, samples int64, stop *bool) error {
	r.elapsed = r.clock.at(r.elapsed)
	r.noteLatest(r.turn.Logs)
	if err := r.callDue(ctx, true, nil, stop); err != nil {
		return err
	}
	r.keepTurn(samples)
	if err := r.checkEntries(); err != nil {
		return err
	}
	if err := r.callDue(ctx, false, nil, stop); err != nil {
		return err
	}
	if r.nextTaken {
		r.lastTurn.callbacks.count(r.elapsed)
		return nil
	}
	r.lastTurn.callbacks = r.elapsed
	if r.party != nil {
		r.answerInterrupts()
	}
	return nil
}

func (r *run[S, B]) checkEntries() error {
	where, err := r.expected.check(r.latest)
	if err == nil {
		return nil
	}
	r.reason = Failed
	return r.errorAt(where, err)
}

func (r *run[S, B]) keepTurn(samples int64) {
	if r.turn.Logs.Len() > 0 && r.keep.Due(r.lastTurn.history, r.elapsed) {
		r.history.Commit(r.elapsed, r.turn.Logs, samples)
	}
	r.lastTurn.history = r.elapsed
}

// callDue calls the changes or the callbacks that are due in this turn; with is, those that are due at that edge of the
// run.
func (r *run[S, B]) callDue(ctx context.Context, changes bool, is func(Schedule) bool, stop *bool) error {
	for i := range r.hooks {
		h := &r.hooks[i]
		if (h.changer != nil) != changes || h.Entry != "" && !hasEntry(h.Entry, r.turn.Logs) {
			continue
		}
		// It is due by time alone, and waits for a border at which the data's position is that of the state.
		if r.nextTaken && !h.waitsForEntry() {
			continue
		}
		if is == nil && !r.isDue(h, r.lastTurn.callbacks, r.elapsed) || is != nil && !is(h.When) {
			continue
		}
		if r.party != nil {
			r.party.asked = true
			if !h.started() { // it is another process's
				continue
			}
		}
		r.at(Activity{hook: h})
		if err := r.stopOrFail(ctx, h.call(ctx, r.report()), stop); err != nil {
			return err
		}
	}
	return nil
}

// isDue reports whether the schedule of a callback, or it itself, asks for a call after a turn.
func (r *run[S, B]) isDue(h *hook, before, after Elapsed) bool {
	if h.When.Due(before, after) {
		return true
	}
	if h.interrupter == nil {
		return false
	}
	if r.party != nil {
		return h.interrupted
	}
	r.activity = Activity{hook: h} // for a panic in it; the question is too short for observers
	return h.interrupter.Interrupts()
}

// runAtEdge runs what is due at the start or at the end of the run: a turn that is not counted, on the first or the
// last batch, with its own row in the history.
func (r *run[S, B]) runAtEdge(ctx context.Context, is func(Schedule) bool) (stop bool, err error) {
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		if is(r.tasks[i].when) {
			if r.party != nil {
				r.party.asked = true
			}
			if err := r.runTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	r.changed = false // such a turn is not counted
	r.elapsed = r.clock.at(r.elapsed)
	r.noteLatest(r.turn.Logs)
	if err := r.callDue(ctx, true, is, &stop); err != nil {
		return false, err
	}
	if r.turn.Logs.Len() > 0 {
		r.history.Commit(r.elapsed, r.turn.Logs, 0)
	}
	if err := r.checkEntries(); err != nil {
		return false, err
	}
	err = r.callDue(ctx, false, is, &stop)
	return stop, err
}

func (r *run[S, B]) runTask(ctx context.Context, i int, stop *bool) error {
	t := &r.tasks[i]
	r.at(Activity{when: &t.when, name: t.name})
	r.expected.ran(i)
	if r.party != nil && !t.steps {
		r.party.asked = true
	}
	var err error
	switch {
	case r.blocks.on && r.blocks.tasks[i].size > 1:
		err = runBlockOfOne(stepContext(ctx), t.block, &r.turn)
	case t.steps:
		err = t.do(stepContext(ctx), &r.turn)
	default:
		err = t.do(ctx, &r.turn)
	}
	r.changed = r.changed || err == nil || isStop(err)
	return r.stopOrFail(ctx, err, stop)
}

// stepContext is the context of a step. The batch is taken, so the step is made even if ctx has ended; if ctx ends
// while the step runs, the step may end with it.
func stepContext(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// stopOrFail sets *stop if the error is a request to stop, and otherwise fails the run.
func (r *run[S, B]) stopOrFail(ctx context.Context, err error, stop *bool) error {
	switch {
	case err == nil:
		return nil
	case isStop(err):
		*stop = true
		if r.stop == nil {
			r.stop = r.wrap(err)
		}
		return nil
	}
	r.reason = Failed
	if ended(ctx, err) || r.party != nil && r.party.cancelledIn(err) {
		r.reason = Cancelled // the task noticed it before the loop
	}
	return r.wrap(err)
}

// ended reports whether an error says that the context has.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

func (r *run[S, B]) noteLatest(logs Logs) {
	if len(r.hooks) > 0 {
		r.latest.update(logs)
	}
}

func (r *run[S, B]) report() Report {
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs.view(), Latest: r.latest.view(), History: r.history,
		From: r.from, Until: r.until, Stop: r.stop, Ahead: r.taken - (r.elapsed.Steps - r.from.Steps), state: StateAt(&r.turn.State)}
}
