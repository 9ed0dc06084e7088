package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// Loop is an ordered list of tasks. It is a value and keeps nothing of a run, so it can run any number of times.
type Loop[S, B any] struct{ tasks []Task[S, B] }

// New makes a loop of tasks; in each turn they run in this order.
func New[S, B any](tasks ...Task[S, B]) Loop[S, B] { return Loop[S, B]{slices.Clone(tasks)} }

// Result is how a run ended. It is valid also beside an error: State is then the last good one.
type Result[S any] struct {
	State   S
	History *History
	Elapsed Elapsed
	Reason  Reason
}

// Run turns the loop over the data until it ends, [Until] is reached, a task or watcher asks to stop, the context is
// cancelled, or something fails. A cancelled context ends the run at the next border between turns; the error then
// wraps the cause of the context. Errors name the step and the task: "loop: step 300: every 100 steps: checkpoint: …".
// A panic in a task, a watcher or the data becomes a [*PanicError].
func (l Loop[S, B]) Run(ctx context.Context, state S, data Data[B], options ...Option) (Result[S], error) {
	r := &run[S, B]{settings: newSettings(options), tasks: l.tasks, turn: Turn[S, B]{State: state}}
	r.elapsed, r.history = r.from, r.resumed
	if r.history == nil {
		r.history = &History{}
	}
	r.history.restrict(r.bounds)
	if err := r.check(data); err != nil {
		return Result[S]{State: state, History: r.history, Elapsed: r.elapsed, Reason: Failed}, fmt.Errorf("loop: %w", err)
	}
	r.history.restrict(r.bounds)
	for i := range r.watchers {
		r.watchers[i].it = r.watchers[i].start()
	}
	r.clock = newClock(r.from)
	if r.elapsed.Date == 0 {
		r.elapsed.Date = r.clock.date // not a date of long ago, from which all dates since would be due at once
	}
	r.before, r.watched = r.elapsed, r.elapsed
	err := r.turns(ctx, data)
	r.elapsed = r.clock.at(r.elapsed)
	err = r.finish(ctx, err)
	return Result[S]{State: r.turn.State, History: r.history, Elapsed: r.elapsed, Reason: r.reason}, err
}

// run is one run of a loop.
type run[S, B any] struct {
	settings
	tasks   []Task[S, B]
	turn    Turn[S, B]
	history *History
	clock   clock
	elapsed Elapsed
	// before is the last whole turn as its tasks saw it, watched as its watchers did: tasks take time, and a schedule
	// must be asked about one line of time without a gap.
	before, watched Elapsed
	reason          Reason
	begun           bool // the first batch is there
	// doing says what the run is at, for the error of a panic: it is set before each call into other people's code.
	doing doing
}

// doing is kept as it comes and made a text only when there is an error, because it is set several times a turn.
type doing struct {
	when *Schedule // nil for what has none
	name string
}

func (r *run[S, B]) check(data Data[B]) error {
	errs := r.errs
	if data == nil {
		errs = append(errs, errors.New("no data given"))
	}
	if r.keep.err != nil {
		errs = append(errs, fmt.Errorf("keep: %s: %w", r.keep, r.keep.err))
	}
	for i, t := range r.tasks {
		if err := errors.Join(t.when.err, t.err); err != nil {
			errs = append(errs, fmt.Errorf("task %d (%s): %w", i+1, label(t.when, t.name), err))
		}
	}
	for i, w := range r.watchers {
		if err := errors.Join(w.when.err, w.err); err != nil {
			errs = append(errs, fmt.Errorf("watcher %d (%s): %w", i+1, label(w.when, w.name), err))
		}
	}
	return errors.Join(errs...)
}

// turns makes one turn a batch. One recover around all of them costs a turn nothing.
func (r *run[S, B]) turns(ctx context.Context, data Data[B]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.reason = Failed
			err = r.wrap(&PanicError{Value: v, Stack: debug.Stack()})
		}
		if err != nil {
			r.elapsed = r.before // the error names the turn that failed; only whole turns are counted
		}
	}()
	if r.until != nil && r.elapsed.Reached(r.until) {
		r.reason = UntilReached
		return nil
	}
	// The batch lives in the turn, so asking it for its size through the interface costs no allocation.
	sized, _ := any(&r.turn.Batch).(Sized)
	r.doing = doing{name: "data"}
	for batch, err := range data {
		if ctx.Err() != nil {
			r.reason = Cancelled
			return r.wrap(context.Cause(ctx))
		}
		if err != nil {
			r.reason = Failed
			r.elapsed.Steps++ // the one that could not be made
			return r.wrap(err)
		}
		r.turn.Batch = batch
		if !r.begun {
			r.begun = true
			stop, err := r.marked(ctx, Schedule.startsAt)
			if err != nil {
				return r.failed(ctx, err)
			}
			if stop {
				r.reason = Stopped
				break
			}
		}
		samples := samplesOf(sized)
		r.elapsed = r.clock.next(r.elapsed, samples)
		now := r.elapsed
		stop, err := r.oneTurn(ctx, samples)
		if err != nil {
			return r.failed(ctx, err)
		}
		r.before = now
		if stop {
			r.reason = Stopped
			break
		}
		if r.until != nil && r.elapsed.Reached(r.until) {
			r.reason = UntilReached
			break
		}
		r.doing = doing{name: "data"}
	}
	if r.reason == DataEnded && ctx.Err() != nil {
		// Data that ends because the context did is a cancelled run, not a finished one.
		r.reason = Cancelled
		return r.wrap(context.Cause(ctx))
	}
	if r.begun {
		if _, err := r.marked(ctx, Schedule.endsAt); err != nil {
			return r.failed(ctx, err)
		}
	}
	return nil
}

// failed sets the reason for an error of a task or a watcher.
func (r *run[S, B]) failed(ctx context.Context, err error) error {
	r.reason = Failed
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		r.reason = Cancelled // the task noticed before the loop did
	}
	return err
}

// marked runs what is due at the start or at the end of the run: a turn that is not counted, on the first or the last
// batch. What it logs is a row of its own.
func (r *run[S, B]) marked(ctx context.Context, is func(Schedule) bool) (stop bool, err error) {
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		if t := &r.tasks[i]; is(t.when) {
			if err := r.doTask(ctx, t, &stop); err != nil {
				return false, err
			}
		}
	}
	r.elapsed = r.clock.at(r.elapsed)
	if r.turn.Logs.Len() > 0 {
		r.history.Commit(r.elapsed, r.turn.Logs, 0)
	}
	for i := range r.watchers {
		if w := &r.watchers[i]; is(w.when) {
			if err := r.doWatch(ctx, w, &stop); err != nil {
				return false, err
			}
		}
	}
	return stop, nil
}

// oneTurn runs the tasks, commits, and runs the watchers.
func (r *run[S, B]) oneTurn(ctx context.Context, samples int64) (stop bool, err error) {
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		if t := &r.tasks[i]; t.when.Due(r.before, r.elapsed) {
			if err := r.doTask(ctx, t, &stop); err != nil {
				return false, err
			}
		}
	}
	if len(r.watchers) == 0 && r.turn.Logs.Len() == 0 {
		r.watched = r.elapsed
		return stop, nil
	}
	r.elapsed = r.clock.at(r.elapsed)
	if r.turn.Logs.Len() > 0 && r.keep.Due(r.watched, r.elapsed) {
		r.history.Commit(r.elapsed, r.turn.Logs, samples)
	}
	for i := range r.watchers {
		if w := &r.watchers[i]; w.when.Due(r.watched, r.elapsed) {
			if err := r.doWatch(ctx, w, &stop); err != nil {
				return false, err
			}
		}
	}
	r.watched = r.elapsed
	return stop, nil
}

func (r *run[S, B]) doTask(ctx context.Context, t *Task[S, B], stop *bool) error {
	r.doing = doing{&t.when, t.name}
	return r.heed(t.do(ctx, &r.turn), stop)
}

func (r *run[S, B]) doWatch(ctx context.Context, w *watching, stop *bool) error {
	r.doing = doing{&w.when, w.name}
	return r.heed(w.it.Watch(ctx, r.report()), stop)
}

// heed tells the wish to stop from an error.
func (r *run[S, B]) heed(err error, stop *bool) error {
	if err == nil {
		return nil
	}
	if isStop(err) {
		*stop = true
		return nil
	}
	return r.wrap(err)
}

// finish tells all attendants that the run is over, the last first, and joins their errors to the run's.
func (r *run[S, B]) finish(ctx context.Context, err error) error {
	ending := Ending{Report: r.report(), Reason: r.reason, Err: err}
	for _, w := range slices.Backward(r.watchers) {
		if endErr := r.end(ctx, w, ending); endErr != nil {
			err = errors.Join(err, endErr)
			if r.reason != Cancelled {
				r.reason = Failed
			}
		}
	}
	return err
}

func (r *run[S, B]) end(ctx context.Context, w watching, ending Ending) (err error) {
	r.doing = doing{&w.when, w.name}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil {
			err = fmt.Errorf("at the end: %w", r.wrap(err))
		}
	}()
	// A cancelled context must not keep an attendant from closing what it has open.
	return w.it.End(context.WithoutCancel(ctx), ending)
}

func (r *run[S, B]) report() Report {
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs.view(), History: r.history, From: r.from, Until: r.until}
}

// wrap says where in the run an error came up.
func (r *run[S, B]) wrap(err error) error {
	where := r.doing.name
	if r.doing.when != nil {
		where = label(*r.doing.when, r.doing.name)
	}
	return stepError(r.elapsed.Steps, where, err)
}

func stepError(step int64, where string, err error) error {
	return fmt.Errorf("loop: step %d: %s: %w", step, where, err)
}
