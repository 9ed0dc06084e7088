package loop

import (
	"context"
	"errors"
	"slices"
)

func (r *run[S, B]) take() (end bool, err error) {
	if !r.begun {
		for _, e := range []*Elapsed{&r.from, &r.elapsed, &r.last.tasks, &r.last.callbacks, &r.last.history} {
			e.Epochs += r.early.Uncounted
		}
		if end, err = r.begin(); end || err != nil {
			return end, err
		}
	}
	samples := int64(1)
	if r.size != nil {
		if samples = int64(r.size()); samples < 0 {
			return r.agreement.refuse(r.wrap(errNegative(samples)))
		}
	}
	if r.blocks.on {
		return r.gather(samples)
	}
	var now Elapsed
	r.count(&now, &r.last.tasks, samples)
	if end, err = r.share(1, now.Samples); end || err != nil {
		return end, err
	}
	r.open(&now)
	r.turn.Batch = *r.batch
	return r.iterate(0, false)
}

// waiting: batches in no block yet.
func (r *run[S, B]) share(waiting, samples int64) (end bool, err error) {
	if r.taken <= r.shared {
		return false, nil
	}
	return r.agreement.use(waiting, samples)
}

func (r *run[S, B]) open(now *Elapsed) {
	r.changed = false
	r.elapsed.set(now)
	r.turn.Elapsed.set(now)
	r.turn.Logs = Logs{}
}

func (r *run[S, B]) iterate(from int, stop bool) (end bool, err error) {
	for i := from; i < len(r.tasks); i++ {
		if when := &r.tasks[i].when; when.always() || when.Due(r.last.tasks, r.elapsed) {
			if err = r.runTask(i, &stop); err != nil {
				return false, err
			}
		}
	}
	begun := &r.elapsed
	if len(r.hooks) == 0 && r.turn.Logs.Len() == 0 {
		r.last.history.set(begun)
	} else {
		before := r.elapsed
		begun = &before
		if err = r.makeChanges(nil, &stop); err != nil {
			return false, err
		}
		r.keepRow()
		if err = r.callCallbacks(nil, &stop); err != nil {
			return false, err
		}
		r.noteCalled()
	}
	r.last.tasks.set(begun)
	return r.conclude(stop)
}

func (r *run[S, B]) runTask(i int, stop *bool) (err error) {
	t := &r.tasks[i]
	r.at(t.activity())
	r.expected.ran(i)
	r.acted = r.acted || !t.steps
	switch {
	case t.steps:
		err = t.do(stepContext(r.work), &r.turn)
	default:
		err = t.do(r.work, &r.turn)
	}
	if err == nil {
		r.changed = true
		return nil
	}
	r.changed = r.changed || isStop(err)
	return r.stopOrFail(err, stop)
}

func (r *run[S, B]) conclude(stop bool) (end bool, err error) {
	r.changed = false
	if stop || r.acted || r.halted {
		if stop, err = r.agreement.border(stop); err != nil {
			return false, err
		}
	}
	if r.untilByClock {
		r.clock.set(&r.elapsed)
	}
	switch {
	case stop:
		r.reason = Stopped
	case r.nextTaken: // only a time can be reached here
		return false, nil
	case r.untilReached(&r.elapsed):
		r.reason = UntilReached
	default:
		return false, nil
	}
	return true, nil
}

// untilReached avoids a copy of Elapsed.
func (r *run[S, B]) untilReached(now *Elapsed) bool {
	if steps, ok := r.until.(Steps); ok {
		return now.Steps >= int64(steps)
	}
	return now.Reached(r.until)
}

func (r *run[S, B]) makeChanges(edge func(Schedule) bool, stop *bool) error {
	r.clock.set(&r.elapsed)
	r.noteLatest(r.turn.Logs)
	return r.callDue(true, edge, stop)
}

func (r *run[S, B]) callCallbacks(edge func(Schedule) bool, stop *bool) error {
	if where, err := r.expected.check(r.latest); err != nil {
		r.reason = Failed
		return r.errorAt(where, err)
	}
	return r.callDue(false, edge, stop)
}

func (r *run[S, B]) noteCalled() {
	if r.nextTaken {
		r.last.callbacks.count(r.elapsed)
		return
	}
	r.last.callbacks = r.elapsed
	if r.interrupted {
		r.interrupted, r.acted = false, true
	}
}

func (r *run[S, B]) keepRow() {
	if r.turn.Logs.Len() > 0 {
		followed := r.monitors && r.follows(r.last.history, r.elapsed, r.turn.Logs)
		if followed || r.keep.always() || r.keep.Due(r.last.history, r.elapsed) {
			r.history.commit(r.elapsed, r.turn.Logs, r.elapsed.Samples-r.last.tasks.Samples, followed)
		}
	}
	r.last.history = r.elapsed
}

func (r *run[S, B]) follows(before, after Elapsed, logs Logs) bool {
	return slices.ContainsFunc(r.hooks, func(h hook) bool {
		return h.Monitor && hasEntry(h.Entry, logs) && (!h.scheduled || h.When.Due(before, after))
	})
}

func (r *run[S, B]) callDue(changes bool, edge func(Schedule) bool, stop *bool) error {
	for i := range r.hooks {
		h := &r.hooks[i]
		if h.Changes != changes || h.Entry != "" && !hasEntry(h.Entry, r.turn.Logs) {
			continue
		}
		// It is due by time alone, and waits until the data's position matches the state.
		if r.nextTaken && !h.waitsForEntry() {
			continue
		}
		if edge == nil && !r.isDue(h, r.last.callbacks, r.elapsed) || edge != nil && !edge(h.When) {
			continue
		}
		r.acted = true
		if !h.started() { // another process runs it
			continue
		}
		r.at(ofHook(h))
		if err := r.stopOrFail(h.attendant.Watch(r.work, r.reported(h)), stop); err != nil {
			return err
		}
	}
	return nil
}

func (r *run[S, B]) isDue(h *hook, before, after Elapsed) bool {
	return h.When.Due(before, after) || h.interrupter != nil && r.agreement.interrupts(h)
}

func (r *run[S, B]) begin() (end bool, err error) {
	if end, err = r.share(1, 0); end || err != nil {
		return end, err
	}
	r.begun = true
	r.turn.Batch = *r.batch
	stop, err := r.atEdge(true)
	r.edge = edge{}
	if err == nil && r.acted {
		stop, err = r.agreement.border(stop)
	}
	switch {
	case err != nil:
		return false, err
	case stop:
		r.reason = Stopped
		return true, nil
	}
	r.at(atData)
	return false, nil
}

// atEdge runs an uncounted iteration on the first or last batch. At the start of a continued run it runs no task: the
// earlier run's had their effects.
func (r *run[S, B]) atEdge(start bool) (stop bool, err error) {
	edge := Schedule.endsAt
	if start {
		edge = Schedule.startsAt
	}
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		if t := &r.tasks[i]; edge(t.when) && !(start && (r.from.Steps > 0 || r.resumed != nil && r.resumed.Len() > 0)) {
			r.acted, r.edge.ran, r.edge.changed = true, true, r.edge.changed || !t.evaluates
			if err := r.runTask(i, &stop); err != nil {
				return false, err
			}
		}
	}
	r.changed = false
	acted := r.acted
	r.acted = false
	if err = r.makeChanges(edge, &stop); err != nil {
		return false, err
	}
	r.edge.ran, r.edge.changed = r.edge.ran || r.acted, r.edge.changed || r.acted
	r.acted = r.acted || acted
	if r.turn.Logs.Len() > 0 {
		r.history.commit(r.elapsed, r.turn.Logs, 0, r.monitors && r.follows(r.last.history, r.elapsed, r.turn.Logs))
	}
	return stop, r.callCallbacks(edge, &stop)
}

func (r *run[S, B]) count(now, last *Elapsed, samples int64) {
	now.set(last)
	now.Steps++
	now.Samples += samples
	if r.endsEpoch {
		now.Epochs++
	}
	if r.readsClock {
		r.clock.set(now)
	}
}

func (r *run[S, B]) cancelled() (end bool, err error) {
	if end, err := r.flush(); end || err != nil {
		return end, err
	}
	r.reason = Cancelled
	r.at(activity{name: "cancelled"})
	return true, r.wrap(context.Cause(r.ctx))
}

// Each batch gets its step.
func stepContext(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (r *run[S, B]) stopOrFail(err error, stop *bool) error {
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
	if ended(r.ctx, err) || r.job != nil && cancelledElsewhere(err) {
		r.reason = Cancelled // the task noticed the context's end first
	}
	return r.wrap(err)
}

func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

func (r *run[S, B]) noteLatest(logs Logs) {
	if len(r.hooks) > 0 {
		r.latest.update(logs)
	}
}

func (r *run[S, B]) reported(to *hook) Report {
	ahead := r.taken - (r.elapsed.Steps - r.from.Steps)
	if r.early != nil && (r.early.Taken || r.early.Asked.Load()) {
		ahead++
	}
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs.view(), Latest: r.latest.view(), History: r.history,
		From: r.from, Until: r.until, Stop: r.stop, Ahead: ahead, state: &r.turn.State, changes: to.Changes, edge: r.edge}
}
