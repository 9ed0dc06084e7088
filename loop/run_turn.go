package loop

import (
	"context"
	"errors"
)

// makeTurn makes the turn of a batch, or lets the batch wait if its turn has nothing but a step that can be made later
// with others.
func (r *run[S, B]) makeTurn(ctx context.Context, samples int64) (end bool, err error) {
	b := &r.blocks
	last := r.seen.tasks
	if b.waiting() {
		last = b.turns[len(b.turns)-1].elapsed
	}
	now := r.count(last, samples)
	task := r.blockOf(last, now)
	if b.waiting() && task != b.task {
		batch := r.turn.Batch
		r.nextIsTaken = true
		end, err := r.flush(ctx)
		if r.nextIsTaken = false; end || err != nil {
			return end, err
		}
		r.turn.Batch = batch
		task = r.blockOf(last, now)
	}
	if !b.waiting() {
		r.changed, r.elapsed = false, now
		r.turn.Elapsed, r.turn.Logs = now, Logs{}
	}
	stop := false
	b.due = b.due[:0]
	for i := range r.tasks {
		switch {
		case !r.tasks[i].when.Due(last, now) || i == task:
		case task >= 0 && i > task:
			b.due = append(b.due, i)
		default: // in a turn without a block, or in front of one
			if err := r.doTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	if task < 0 {
		return r.finishTurn(ctx, gathered{now, samples}, stop)
	}
	b.task = task
	b.batches, b.turns = append(b.batches, r.turn.Batch), append(b.turns, gathered{now, samples})
	if stop {
		if _, err = r.flush(ctx); err == nil {
			r.reason = Stopped
		}
		return true, err
	}
	if len(b.due) == 0 && len(b.batches) < b.tasks[task].limit && now.Time-b.turns[0].elapsed.Time < blockTime &&
		!now.Reached(r.until) && !r.callbackDue(last, now) &&
		(len(r.entries.wanted) == 0 || r.entries.pending > 0) && r.watchedName(r.turn.Logs) == "" {
		return false, nil
	}
	return r.flush(ctx)
}

// finishTurn is what comes behind the tasks of a turn.
func (r *run[S, B]) finishTurn(ctx context.Context, turn gathered, stop bool) (end bool, err error) {
	if err := r.look(ctx, turn.samples, &stop); err != nil {
		return false, err
	}
	r.seen.tasks = turn.elapsed
	return r.ended(stop), nil
}

// count is the time of the turn behind last.
func (r *run[S, B]) count(last Elapsed, samples int64) Elapsed {
	if r.timed {
		return r.clock.next(last, samples)
	}
	last.Steps++
	last.Samples += samples
	return last
}

// ended tells whether a turn was the last one, and sets the reason.
func (r *run[S, B]) ended(stop bool) bool {
	r.changed = false
	if r.untilTimed {
		r.elapsed = r.clock.at(r.elapsed) // the tasks took time
	}
	switch {
	case stop:
		r.reason = Stopped
	case r.nextIsTaken: // only time can be over, and the batch is to have its turn
		return false
	case r.until != nil && r.elapsed.Reached(r.until):
		r.reason = UntilReached
	default:
		return false
	}
	return true
}

// look makes the changes of a turn, commits it, and has the callbacks look at it.
func (r *run[S, B]) look(ctx context.Context, samples int64, stop *bool) error {
	if len(r.beside) == 0 && r.turn.Logs.Len() == 0 {
		r.seen.callbacks, r.seen.history = r.elapsed, r.elapsed
		return nil
	}
	r.elapsed = r.clock.at(r.elapsed)
	r.noteLatest(r.turn.Logs)
	if err := r.call(ctx, true, nil, stop); err != nil {
		return err
	}
	r.keepTurn(samples)
	if err := r.checkEntries(); err != nil {
		return err
	}
	if err := r.call(ctx, false, nil, stop); err != nil {
		return err
	}
	if r.nextIsTaken {
		r.seen.callbacks.Steps, r.seen.callbacks.Samples = r.elapsed.Steps, r.elapsed.Samples
		return nil
	}
	r.seen.callbacks = r.elapsed
	return nil
}

func (r *run[S, B]) checkEntries() error {
	err := r.entries.check(r.latest)
	if err == nil {
		return nil
	}
	r.reason = Failed
	return r.errorAt(r.activity.String(), err) // not wrap: this turn was made, also where no task was due
}

func (r *run[S, B]) keepTurn(samples int64) {
	if r.turn.Logs.Len() > 0 && r.keep.Due(r.seen.history, r.elapsed) {
		r.history.Commit(r.elapsed, r.turn.Logs, samples)
	}
	r.seen.history = r.elapsed
}

// call calls the changes or the callbacks that are due in this turn, or else at the end of the run that is asked for.
func (r *run[S, B]) call(ctx context.Context, changes bool, is func(Schedule) bool, stop *bool) error {
	for i := range r.beside {
		b := &r.beside[i]
		if (b.changer != nil) != changes || b.Entry != "" && !sees(b.Entry, r.turn.Logs) {
			continue
		}
		if r.nextIsTaken && (b.Entry == "" || b.sparse) { // due by time alone: it waits a turn, for a border at which the data is where the state is
			continue
		}
		if is == nil && !b.due(r.seen.callbacks, r.elapsed) || is != nil && !is(b.When) {
			continue
		}
		r.at(Activity{beside: b})
		if err := r.stopOrFail(ctx, b.look(ctx, r.report()), stop); err != nil {
			return err
		}
	}
	return nil
}

// marked runs what is due at the start or at the end of the run: a turn that is not counted, on the first or the last
// batch. What it logs is a row of its own.
func (r *run[S, B]) marked(ctx context.Context, is func(Schedule) bool) (stop bool, err error) {
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		if is(r.tasks[i].when) {
			if err := r.doTask(ctx, i, &stop); err != nil {
				return false, err
			}
		}
	}
	r.changed = false // such a turn is not counted, whatever it did
	r.elapsed = r.clock.at(r.elapsed)
	r.noteLatest(r.turn.Logs)
	if err := r.call(ctx, true, is, &stop); err != nil {
		return false, err
	}
	if r.turn.Logs.Len() > 0 {
		r.history.Commit(r.elapsed, r.turn.Logs, 0)
	}
	if err := r.checkEntries(); err != nil {
		return false, err
	}
	err = r.call(ctx, false, is, &stop)
	return stop, err
}

func (r *run[S, B]) doTask(ctx context.Context, i int, stop *bool) error {
	t := &r.tasks[i]
	r.at(Activity{when: &t.when, name: t.name})
	r.entries.ran(i)
	var err error
	switch {
	case r.blocks.on && r.blocks.tasks[i].size > 1:
		err = doBlockOfOne(ofStep(ctx), t.block, &r.turn)
	case t.steps:
		err = t.do(ofStep(ctx), &r.turn)
	default:
		err = t.do(ctx, &r.turn)
	}
	r.changed = r.changed || err == nil || isStop(err)
	return r.stopOrFail(ctx, err, stop)
}

// ofStep is the context of a step: the batch is taken, and so its step is made. A context that ends while the step runs is
// the step's affair.
func ofStep(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// stopOrFail tells the wish to stop from an error.
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
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		r.reason = Cancelled // the task noticed before the loop did
	}
	return r.wrap(err)
}

func (r *run[S, B]) noteLatest(logs Logs) {
	if len(r.beside) > 0 {
		r.latest.update(logs)
	}
}

func (r *run[S, B]) report() Report {
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs.view(), Latest: r.latest.view(), History: r.history,
		From: r.from, Until: r.until, Stop: r.stop, Ahead: r.taken - (r.elapsed.Steps - r.from.Steps), state: StateAt(&r.turn.State)}
}
