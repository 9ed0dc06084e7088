package loop

import (
	"errors"
	"fmt"
)

// check finds what is wrong with a loop and its options before the first turn.
func (r *run[S, B]) check(data Data[B]) error {
	errs := r.errs
	if data == nil {
		errs = append(errs, errors.New("no data given"))
	}
	errs = append(errs, r.checkParts()...)
	return errors.Join(errs...)
}

func (r *run[S, B]) checkParts() (errs []error) {
	if r.keep.err != nil {
		errs = append(errs, fmt.Errorf("keep: %s: %w", r.keep, r.keep.err))
	}
	if err := r.setSize(); err != nil {
		errs = append(errs, err)
	}
	if r.restores != "" {
		if err := checkCopied[S](); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.restores, err))
		}
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		if err := errors.Join(t.when.err, t.err, r.unreachable(t.when)); err != nil {
			errs = append(errs, fmt.Errorf("task %d (%s): %w", i+1, t.label(), err))
		}
	}
	for i := range r.watchers {
		w := &r.watchers[i]
		if err := errors.Join(w.when.err, w.err, r.unreachable(w.when)); err != nil {
			errs = append(errs, fmt.Errorf("watcher %d (%s): %w", i+1, w.label(), err))
		}
	}
	return errs
}

// unreachable finds a schedule that no run of this length is due in: mostly a mistaken number. [Never] is meant.
func (r *run[S, B]) unreachable(when Schedule) error {
	if when.err != nil || when.rule == nil || r.until == nil || r.until.length() == 0 || !when.never(r.until) {
		return nil
	}
	return fmt.Errorf("never due in %s; leave it out, or give it AndAtEnd", r.until)
}

// setSize finds out how to count the examples of a batch.
func (r *run[S, B]) setSize() error {
	if r.sizes != nil {
		f, ok := r.sizes.(func(B) int)
		if !ok {
			var batch B
			return fmt.Errorf("samples by: the function is a %T, the batches are of type %T", r.sizes, batch)
		}
		r.size = func() int64 { return int64(f(r.turn.Batch)) }
		return nil
	}
	// The batch lives in the turn, so asking it for its size through the interface costs no allocation.
	if sized, ok := any(&r.turn.Batch).(Sized); ok {
		r.size = func() int64 { return int64(sized.Samples()) }
		return nil
	}
	r.size = func() int64 { return 1 }
	return nil
}

// entries finds watchers of names that nothing logs.
type entries struct {
	watched []*watching
	// pending is the number of tasks that had no turn yet: they may log the name.
	pending int
	done    []bool // of each task
}

func (e *entries) start(watchers []watching, tasks int) {
	for i := range watchers {
		if watchers[i].entry != "" {
			e.watched = append(e.watched, &watchers[i])
		}
	}
	if len(e.watched) > 0 {
		e.pending, e.done = tasks, make([]bool, tasks)
	}
}

func (e *entries) ran(task int) {
	if e.pending > 0 && !e.done[task] {
		e.done[task] = true
		e.pending--
	}
}

// check is called when a turn has its logs. It stops looking when it has found them all.
func (e *entries) check(latest Logs) error {
	if len(e.watched) == 0 || e.pending > 0 {
		return nil
	}
	for _, w := range e.watched {
		if _, err := latest.Get(w.entry); err != nil {
			return fmt.Errorf("all tasks had a turn: %s: %w", w.label(), err)
		}
	}
	e.watched = nil
	return nil
}

// sees tells whether the entry is among the logs.
func (w *watching) sees(logs Logs) bool {
	for i := range logs.entries {
		if logs.entries[i].hasName(w.entry) || logs.entries[i].hasPath(w.entry) {
			return true
		}
	}
	return false
}
