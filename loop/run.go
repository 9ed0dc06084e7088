package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/shield"
)

// run is one run of a loop. Each batch of the data comes to receive, and take makes its iteration (iteration.go) or
// lets it wait in a block (blocks.go). An agreement (together.go) decides what several processes must decide alike.
type run[S, B any] struct {
	settings
	tasks     []Task[S, B]
	turn      Turn[S, B]
	batch     *B              // the newest from the data, which writes it; that of the turn may be an earlier one
	ctx       context.Context // ends the run
	work      context.Context // of tasks and callbacks: it does not end where processes agree
	agreement agreement
	history   *History
	latest    Logs // the newest value of each name, if there are callbacks
	clock     clock
	// readsClock is false where the time of an iteration cannot be observed: reading the clock takes longer than the
	// rest of it.
	readsClock, untilByClock bool
	monitors                 bool       // a callback follows the values of an entry
	size                     func() int // of the newest batch, nil if it counts as one
	elapsed                  Elapsed
	last                     lastIteration
	reason                   Reason
	stop                     error // the first request to stop
	begun                    bool  // the first batch was taken
	endsEpoch                bool  // the newest batch is the last of its epoch
	over                     bool  // no further batch is taken
	failure                  error // of an iteration, or of the data
	taken                    int64 // batches from the data
	early                    *early
	shared                   int64 // of these, those that all processes have
	nextTaken                bool  // the newest batch is for the iteration after this one
	changed                  bool  // a task of the present iteration has run
	acted                    bool  // something besides steps ran since the last border at which processes agreed
	refused                  error // where processes agree: of the data of this one, on which they have not agreed yet
	halted                   bool  // where processes agree: the run ends after the batches that all have
	interrupted              bool  // where processes agree: an Interrupter of one of them asks for a call
	partial                  bool  // the run ended in the middle of an iteration that counts
	expected                 expectedEntries
	blocks                   blocks[B]
	reading                  reading
	source                   *source[B]
	// activity is set before each call of code that is not the loop's, for the error of a panic in it.
	activity  activity
	stage     string // "at the start: " or "at the end: "
	observers []*hook
}

// lastIteration is what had elapsed in the last whole iteration when the tasks, the callbacks and the history were
// asked: tasks and callbacks take time, and each schedule must be asked about one line of time without gaps.
type lastIteration struct{ tasks, callbacks, history Elapsed }

func (r *run[S, B]) start() error {
	r.stage = "at the start: "
	defer func() { r.stage = "" }()
	if r.monitors = slices.ContainsFunc(r.hooks, func(h hook) bool { return h.Monitor }); r.monitors {
		r.history.follow(r.follows)
	}
	r.history.restrict(r.rows)
	if err := r.startTasks(); err != nil {
		return err
	}
	r.expected.start(r.hooks, len(r.tasks))
	if r.until != nil {
		r.untilByClock = byClock(r.until)
	}
	r.readsClock = r.needsClock()
	r.at(activity{name: "block size"})
	if err := r.shielded(func() error { r.startBlocks(); return nil }); err != nil {
		return err
	}
	if r.clock.start.IsZero() {
		r.clock = newClock(r.from)
	}
	r.elapsed.Date = cmp.Or(r.elapsed.Date, r.clock.date) // or all dates since 1970 would be due at once
	r.last = lastIteration{r.elapsed, r.elapsed, r.elapsed}
	if err := r.startHooks(); err != nil {
		return err
	}
	if r.stop == nil {
		r.stop = r.endedBy
	}
	return nil
}

func (r *run[S, B]) startHooks() error {
	from := r.beginning()
	from.state = &r.turn.State
	for i := range r.hooks {
		h := &r.hooks[i]
		if h.AtRank0 && r.job != nil && r.job.Rank() != 0 {
			continue
		}
		var failure error
		if err := r.shielded(func() error { r.at(ofHook(h)); failure = h.start(from); return nil }); err != nil {
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
	r.tasks = slices.Clone(r.tasks) // those of the loop serve other runs too
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.start == nil {
			continue
		}
		r.at(t.activity())
		if err := r.shielded(func() error { t.do = t.start(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// needsClock reports whether the time at which an iteration begins can be observed. (Logs are committed with the time
// after the tasks.)
func (r *run[S, B]) needsClock() bool {
	return r.untilByClock || r.keep.needs().clock ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return !t.ignoresTime || t.when.needs().clock })
}

// iterations makes one iteration for each batch.
func (r *run[S, B]) iterations(data Source[B]) error {
	switch {
	case r.stop != nil:
		r.reason = Stopped
		return nil
	case r.until != nil && r.elapsed.Reached(r.until):
		r.reason = UntilReached
		return nil
	}
	left, err := r.eachBatch(data)
	if err = r.agreement.end(left, err); err != nil {
		if again := r.shielded(func() error { r.countFailed(); return nil }); again != nil { // a schedule can panic there
			err = errors.Join(err, again)
		}
	}
	r.clock.set(&r.elapsed)
	return err
}

// eachBatch gives each batch to receive. Whatever ends the run, the source only sees that no further batch is asked
// for; the error of a failed iteration is kept and does not pass through the source. left: the run ended without the
// source.
func (r *run[S, B]) eachBatch(data Source[B]) (left bool, err error) {
	if r.ctx.Err() != nil {
		return false, nil
	}
	if err := r.shielded(func() error { r.at(atData); return nil }); err != nil {
		return false, err
	}
	s := &source[B]{uncancelable: r.ctx.Done() == nil, shared: r.reading.on}
	s.turn = func(last bool, failure error) (more bool) {
		whole := false
		defer func() {
			if !whole {
				r.over, r.failure = true, r.located(shield.Caught(recover()))
			}
			r.at(atData) // also at the end of the run: what the source then does is not the last task's
			s.enter()
		}()
		r.endsEpoch = last
		if end, err := r.receive(failure); end || err != nil {
			r.over, r.failure = true, err
		}
		whole = true
		return !r.over && r.refused == nil
	}
	r.source = s
	err, left = s.wait(r.ctx, shield.Start(func() error {
		if r.reading.on {
			s.goroutine, _ = origin()
		}
		return s.all(r.epochs(data))
	}))
	switch {
	case r.failure == nil:
		return left && !r.over, r.located(err)
	case left:
		return false, fmt.Errorf("%w; %w", r.failure, ErrSourceLeft)
	}
	return false, r.failure
}

// epochs is the data of the run, from where it begins.
func (r *run[S, B]) epochs(data Source[B]) epochsOf[B] {
	return epochsOf[B]{data, r.from, r.until, r.needsEpochs(), r.early, r.batch}
}

// needsEpochs reports whether anything in the run is due by epochs.
func (r *run[S, B]) needsEpochs() bool {
	return byEpochs(r.until) || r.keep.needs().epochs ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return t.when.needs().epochs }) ||
		slices.ContainsFunc(r.hooks, func(h hook) bool { return h.When.needs().epochs })
}

// receive handles what the data yields: r.batch or a failure. A batch has its iteration even if the context ended
// meanwhile: the data's position is then that of the state.
func (r *run[S, B]) receive(failure error) (end bool, err error) {
	switch {
	case r.over: // the source read the state, which ended the run
		return true, r.failure
	case failure == nil:
		r.taken++
		if end, err = r.take(); err != nil {
			return false, err
		}
	case failure == errRead:
		return r.flush()
	}
	return r.agreement.next(end, failure)
}

// await waits for steps that may still be running.
func (r *run[S, B]) await(err error) error {
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.await == nil {
			continue
		}
		failure := r.shielded(func() error {
			r.at(t.activity())
			if err := t.await.Await(context.WithoutCancel(r.work), r.turn.State); err != nil {
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
func (r *run[S, B]) shielded(f func() error) error { return r.located(shield.Run(f)) }

// shieldedEnd is shielded for what may end the run.
func (r *run[S, B]) shieldedEnd(f func() (end bool, err error)) (end bool, err error) {
	err = r.shielded(func() (err error) { end, err = f(); return err })
	return end, err
}

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

// countFailed counts an iteration that failed if it is in the state.
func (r *run[S, B]) countFailed() {
	r.noteLatest(r.turn.Logs)
	r.partial = r.changed
	switch {
	case !r.changed:
		r.elapsed = r.last.tasks // only what is in the state is counted
	case r.last.history.Steps < r.elapsed.Steps: // it failed before its row was committed
		r.clock.set(&r.elapsed)
		r.keepRow()
	case r.last.tasks.Steps == r.elapsed.Steps && r.turn.Logs.Len() > 0: // at the start or the end of the run
		r.history.Commit(r.clock.at(r.elapsed), r.turn.Logs, 0)
	}
}

// endHooks ends the hooks in the reverse order, and joins their errors to that of the run.
func (r *run[S, B]) endHooks(err error) error {
	r.stage = "at the end: "
	failure, reason := err, r.reason
	for i := range slices.Backward(r.hooks) {
		h := &r.hooks[i]
		if !h.started() {
			continue
		}
		endErr := shield.Run(func() error {
			r.at(ofHook(h))
			// A cancelled context must not keep a callback from closing what it has open.
			return h.attendant.End(context.WithoutCancel(r.ctx), Ending{Report: r.reported(h), Reason: reason, Err: failure, Partial: r.partial})
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
