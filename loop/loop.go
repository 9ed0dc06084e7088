package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
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
	r.elapsed, r.before, r.watched, r.history = r.from, r.from, r.from, r.resumed
	if r.history == nil {
		r.history = &History{}
	}
	if err := r.check(data); err != nil {
		return Result[S]{State: state, History: r.history, Elapsed: r.elapsed, Reason: Failed}, fmt.Errorf("loop: %w", err)
	}
	for i := range r.watchers {
		r.watchers[i].it = r.watchers[i].start()
	}
	r.start = time.Now()
	err := r.turns(ctx, data)
	r.elapsed = r.elapsed.at(r.start, r.from.Time)
	err = r.finish(ctx, err)
	return Result[S]{State: r.turn.State, History: r.history, Elapsed: r.elapsed, Reason: r.reason}, err
}

// run is one run of a loop.
type run[S, B any] struct {
	settings
	tasks   []Task[S, B]
	turn    Turn[S, B]
	history *History
	start   time.Time
	elapsed Elapsed
	// before is the last whole turn as its tasks saw it, watched as its watchers did: tasks take time, and a schedule
	// must be asked about one line of time without a gap.
	before, watched Elapsed
	reason          Reason
	// doing says what the run is at, for the error of a panic: it is set before each call into other people's code.
	doing doing
}

// doing is kept as two words and made a text only when there is an error, because it is set several times a turn.
type doing struct {
	when Schedule
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
		samples := samplesOf(sized)
		r.elapsed = r.elapsed.next(samples, r.start, r.from.Time)
		now := r.elapsed
		stop, err := r.oneTurn(ctx, samples)
		if err != nil {
			r.reason = Failed
			if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
				r.reason = Cancelled // the task noticed before the loop did
			}
			return err
		}
		r.before = now
		if stop {
			r.reason = Stopped
			return nil
		}
		if r.until != nil && r.elapsed.Reached(r.until) {
			r.reason = UntilReached
			return nil
		}
		r.doing = doing{name: "data"}
	}
	if ctx.Err() != nil {
		// Data that ends because the context did is a cancelled run, not a finished one.
		r.reason = Cancelled
		return r.wrap(context.Cause(ctx))
	}
	r.reason = DataEnded
	return nil
}

// oneTurn runs the tasks, commits, and runs the watchers.
func (r *run[S, B]) oneTurn(ctx context.Context, samples int64) (stop bool, err error) {
	r.turn.Elapsed, r.turn.Logs = r.elapsed, Logs{}
	for i := range r.tasks {
		t := &r.tasks[i]
		if !t.when.Due(r.before, r.elapsed) {
			continue
		}
		r.doing = doing{t.when, t.name}
		if err := t.do(ctx, &r.turn); isStopOrNil(err) {
			stop = stop || err != nil
		} else {
			return false, r.wrap(err)
		}
	}
	if len(r.watchers) == 0 && r.turn.Logs.Len() == 0 {
		r.watched = r.elapsed
		return stop, nil
	}
	r.elapsed = r.elapsed.at(r.start, r.from.Time)
	if r.turn.Logs.Len() > 0 && r.keep.Due(r.watched, r.elapsed) {
		r.history.rows = append(r.history.rows, row{r.elapsed, r.turn.Logs, samples})
	}
	for i := range r.watchers {
		w := &r.watchers[i]
		if !w.when.Due(r.watched, r.elapsed) {
			continue
		}
		r.doing = doing{w.when, w.name}
		if err := w.it.Watch(ctx, r.report()); isStopOrNil(err) {
			stop = stop || err != nil
		} else {
			return false, r.wrap(err)
		}
	}
	r.watched = r.elapsed
	return stop, nil
}

// isStopOrNil is apart from isStop so that the usual nil costs no walk along an error's chain.
func isStopOrNil(err error) bool { return err == nil || isStop(err) }

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
	r.doing = doing{w.when, w.name}
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
	return Report{Elapsed: r.elapsed, Logs: r.turn.Logs, History: r.history, Until: r.until}
}

// wrap says where in the run an error came up.
func (r *run[S, B]) wrap(err error) error {
	where := r.doing.name
	if r.doing.when.name != "" {
		where = label(r.doing.when, r.doing.name)
	}
	return stepError(r.elapsed.Steps, where, err)
}

func stepError(step int64, where string, err error) error {
	return fmt.Errorf("loop: step %d: %s: %w", step, where, err)
}

// next counts a turn with that many examples.
func (e Elapsed) next(samples int64, start time.Time, base time.Duration) Elapsed {
	e.Steps++
	e.Samples += samples
	return e.at(start, base)
}

// at looks at the clock: base is the active time of the runs before this one, which began at start.
func (e Elapsed) at(start time.Time, base time.Duration) Elapsed {
	e.Time = base + time.Since(start)
	return e
}
