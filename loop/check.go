package loop

import (
	"errors"
	"fmt"
	"reflect"
)

// check finds what is wrong with a loop and its options before the first turn.
func (r *run[S, B]) check(noData bool) error {
	errs := r.errs
	if noData {
		errs = append(errs, errors.New("no data given"))
	}
	if err := r.keep.err; err != nil {
		errs = append(errs, fmt.Errorf("keep: %s: %w", r.keep, err))
	}
	var err error
	if r.size, err = sizer(r.sizes, &r.turn.Batch); err != nil {
		errs = append(errs, err)
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		var unset error
		if t.when.zero() {
			unset = errNoSchedule
		}
		if err := errors.Join(t.when.err, unset, t.err, r.unreachable(t.when)); err != nil {
			errs = append(errs, fmt.Errorf("task %d (%s): %w", i+1, t.label(), err))
		}
	}
	for i := range r.beside {
		b := &r.beside[i]
		if err := errors.Join(b.When.err, b.Err, r.unreachable(b.When)); err != nil {
			errs = append(errs, fmt.Errorf("callback %d (%s): %w", i+1, b.String(), err))
		}
	}
	return errors.Join(errs...)
}

// unreachable finds a schedule that no run of this length is due in: mostly a mistaken number. [Never] is meant.
func (r *run[S, B]) unreachable(when Schedule) error {
	if when.err != nil || when.rule == nil || r.until == nil || r.until.Length() == 0 || !when.never(r.until) {
		return nil
	}
	return fmt.Errorf("never due in %s; leave it out, or give it AndAtEnd", r.until)
}

// sizer is how to count the examples of a batch, which lies at a place; nil if each batch counts as one.
func sizer[B any](by any, batch *B) (func() int, error) {
	if by != nil {
		f, ok := by.(func(B) int)
		if !ok {
			return nil, fmt.Errorf("samples by: the function is a %T, the batches are of type %s", by, reflect.TypeFor[B]())
		}
		return func() int { return f(*batch) }, nil
	}
	// Asking the place costs no allocation, as asking a value would.
	if sized, ok := any(batch).(Sized); ok {
		return sized.Samples, nil
	}
	t := reflect.TypeFor[B]()
	if t.Kind() != reflect.Interface && !t.Implements(reflect.TypeFor[Sized]()) {
		return nil, nil
	}
	return func() int { // a pointer; or an interface, in which each batch may be of a type of its own
		if sized, ok := as[Sized](*batch, nil); ok {
			return sized.Samples()
		}
		return 1
	}, nil
}

func errNegative(samples int64) error {
	return fmt.Errorf("a batch must not have a negative number of samples, got %d", samples)
}

// entries finds names that callbacks wait for or need, and that nothing logs.
type entries struct {
	wanted []wanted
	// pending is the number of tasks that had no turn yet: they may log the name.
	pending int
	done    []bool // of each task
}

// wanted is a name, and who wants it.
type wanted struct{ entry, label string }

func (e *entries) start(all []beside, tasks int) {
	for i := range all {
		b := &all[i]
		if b.Entry != "" {
			e.wanted = append(e.wanted, wanted{b.Entry, b.String()})
		}
		for _, name := range b.needs {
			e.wanted = append(e.wanted, wanted{name, onEach(name, b.Name)})
		}
	}
	if len(e.wanted) > 0 {
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
	if len(e.wanted) == 0 || e.pending > 0 {
		return nil
	}
	for _, w := range e.wanted {
		if _, err := latest.Get(w.entry); err != nil {
			return fmt.Errorf("all tasks had a turn: %s: %w", w.label, err)
		}
	}
	e.wanted = nil
	return nil
}
