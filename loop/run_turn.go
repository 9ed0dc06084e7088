package loop

import (
	"context"
	"errors"
)

// count counts a turn.
func (r *run[S, B]) count(samples int64) {
	r.changed = false
	if r.timed {
		r.elapsed = r.clock.next(r.elapsed, samples)
		return
	}
	r.elapsed.Steps++
	r.elapsed.Samples += samples
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
	case r.holds: // only time can be over, and the batch is to have its turn
		return false
	case r.until != nil && r.elapsed.Reached(r.until):
		r.reason = UntilReached
	default:
		return false
	}
	return true
}

// look commits a turn and has it watched.
func (r *run[S, B]) look(ctx context.Context, samples int64, stop *bool) error {
	if len(r.watchers) == 0 && r.turn.Logs.Len() == 0 {
		r.watched, r.kept = r.elapsed, r.elapsed
		return nil
	}
	r.elapsed = r.clock.at(r.elapsed)
	r.noteLatest(r.turn.Logs)
	if err := r.watch(ctx, true, nil, stop); err != nil {
		return err
	}
	r.keepTurn(samples)
	if err := r.entries.check(r.latest); err != nil {
		r.reason = Failed
		return r.errorAt(r.doing.String(), err) // not wrap: this turn was made, also where no task was due
	}
	if err := r.watch(ctx, false, nil, stop); err != nil {
		return err
	}
	if r.holds {
		r.watched.Steps, r.watched.Samples = r.elapsed.Steps, r.elapsed.Samples
		return nil
	}
	r.watched = r.elapsed
	return nil
}

func (r *run[S, B]) keepTurn(samples int64) {
	if r.turn.Logs.Len() > 0 && r.keep.Due(r.kept, r.elapsed) {
		r.history.Commit(r.elapsed, r.turn.Logs, samples)
	}
	r.kept = r.elapsed
}

// watch runs the watchers that are due in this turn, or else in the place that is asked for: either those that look
// first or the others.
func (r *run[S, B]) watch(ctx context.Context, first bool, is func(Schedule) bool, stop *bool) error {
	for i := range r.watchers {
		w := &r.watchers[i]
		if w.first != first || w.entry != "" && !w.sees(r.turn.Logs) {
			continue
		}
		if r.holds && (w.entry == "" || w.seldom) { // due by time alone: it waits a turn, for a border at which the data is where the state is
			continue
		}
		if is == nil && !w.when.Due(r.watched, r.elapsed) || is != nil && !is(w.when) {
			continue
		}
		r.at(doing{watch: w})
		if err := r.heed(ctx, w.it.Watch(ctx, r.report()), stop); err != nil {
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
	if err := r.watch(ctx, true, is, &stop); err != nil {
		return false, err
	}
	if r.turn.Logs.Len() > 0 {
		r.history.Commit(r.elapsed, r.turn.Logs, 0)
	}
	if err := r.entries.check(r.latest); err != nil {
		r.reason = Failed
		return false, r.errorAt(r.doing.String(), err)
	}
	return stop, r.watch(ctx, false, is, &stop)
}

func (r *run[S, B]) doTask(ctx context.Context, i int, stop *bool) error {
	t := &r.tasks[i]
	r.at(doing{when: &t.when, name: t.name})
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
	return r.heed(ctx, err, stop)
}

// ofStep is the context of a step: the batch is taken, and so its step is made. A context that ends while the step runs is
// the step's affair.
func ofStep(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// heed tells the wish to stop from an error.
func (r *run[S, B]) heed(ctx context.Context, err error, stop *bool) error {
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
	if len(r.watchers) > 0 {
		r.latest.update(logs)
	}
}

func (r *run[S, B]) report() Report {
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs.view(), Latest: r.latest.view(), History: r.history,
		From: r.from, Until: r.until, Stop: r.stop, Ahead: r.taken - (r.elapsed.Steps - r.from.Steps), state: held[S]{&r.turn.State}}
}
