package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/epochs"
	"github.com/lazo-ml/lazo/internal/reader"
	"github.com/lazo-ml/lazo/internal/shield"
)

type run[S, B any] struct {
	settings
	tasks     []Task[S, B]
	turn      Turn[S, B]
	batch     *B // the newest; the turn may have an earlier one
	ctx       context.Context
	work      context.Context
	agreement agreement
	history   *History
	latest    Logs
	clock     clock
	// false if no one observes the time: the clock is slower than the rest of an iteration
	readsClock, untilByClock bool
	monitors                 bool
	size                     func() int
	elapsed                  Elapsed
	last                     lastIteration
	reason                   Reason
	stop                     error
	begun                    bool
	endsEpoch                bool
	over                     bool
	failure                  error
	taken                    int64
	early                    *epochs.Early
	shared                   int64
	nextTaken                bool
	changed                  bool
	acted                    bool  // anything but steps ran since the last agreement
	refused                  error // in a job: an error of the data, before the agreement
	halted                   bool  // in a job: the run ends after the batches that all have
	interrupted              bool
	edge                     edge
	partial                  bool
	expected                 expectedEntries
	blocks                   blocks[B]
	reading                  reading
	source                   *reader.Reader
	activity                 activity
	stage                    string
	observers                []*hook
}

// lastIteration has the elapsed that each kind last saw: schedules need a timeline without gaps.
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
	r.readsClock = r.untilByClock || r.keep.needs().clock ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return !t.ignoresTime || t.when.needs().clock })
	r.at(activity{name: "block size"})
	if err := r.shielded(func() error { r.startBlocks(); return nil }); err != nil {
		return err
	}
	if r.clock.start.IsZero() {
		r.clock = newClock(r.from)
	}
	r.elapsed.Date = cmp.Or(r.elapsed.Date, r.clock.date) // else all dates since 1970 would be due at once
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
	from.state, from.Prepared = &r.turn.State, slices.Clone(r.made)
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
		case isStop(failure):
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

func (r *run[S, B]) startTasks() error {
	r.tasks = slices.Clone(r.tasks)
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

// The source sees no error of an iteration. left: the run abandoned it.
func (r *run[S, B]) eachBatch(data Source[B]) (left bool, err error) {
	if r.ctx.Err() != nil {
		return false, nil
	}
	if err := r.shielded(func() error { r.at(atData); return nil }); err != nil {
		return false, err
	}
	s := &reader.Reader{Uncancelable: r.ctx.Done() == nil, Shared: r.reading.on}
	s.Turn = func(last bool, failure error) (more bool) {
		whole := false
		defer func() {
			if !whole {
				r.over, r.failure = true, r.located(shield.Caught(recover()))
			}
			r.at(atData)
			s.Enter()
		}()
		r.endsEpoch = last
		if end, err := r.receive(failure); end || err != nil {
			r.over, r.failure = true, err
		}
		whole = true
		return !r.over && r.refused == nil
	}
	r.source = s
	err, left = s.Wait(r.ctx, shield.Start(func() error {
		s.Begin()
		defer s.End()
		r.epochs(data).All(s.Yield)
		return nil
	}))
	switch {
	case r.failure == nil:
		return left && !r.over, r.located(err)
	case left:
		return false, fmt.Errorf("%w; %w", r.failure, ErrSourceLeft)
	}
	return false, r.failure
}

func (r *run[S, B]) epochs(data Source[B]) epochs.Range[B] {
	all := epochsOf(data, r.from, r.until)
	all.Early, all.Newest = r.early, r.batch
	all.Ahead = byEpochs(r.until) || r.keep.needs().epochs ||
		slices.ContainsFunc(r.tasks, func(t Task[S, B]) bool { return t.when.needs().epochs }) ||
		slices.ContainsFunc(r.hooks, func(h hook) bool { return h.When.needs().epochs })
	return all
}

// receive handles r.batch or a failure of the data. A batch has its iteration even after the context ended: the data's
// position must match the state.
func (r *run[S, B]) receive(failure error) (end bool, err error) {
	switch {
	case r.over:
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

func (r *run[S, B]) shielded(f func() error) error { return r.located(shield.Run(f)) }

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

func (r *run[S, B]) countFailed() {
	r.noteLatest(r.turn.Logs)
	r.partial = r.changed
	switch {
	case !r.changed:
		r.elapsed = r.last.tasks
	case r.last.history.Steps < r.elapsed.Steps: // its row was not committed
		r.clock.set(&r.elapsed)
		r.keepRow()
	case r.last.tasks.Steps == r.elapsed.Steps && r.turn.Logs.Len() > 0:
		r.history.Commit(r.clock.at(r.elapsed), r.turn.Logs, 0)
	}
}

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
			// The callback must be able to close its files.
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
