package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/lazo-ml/lazo/internal/abilities"
)

func (r *run[S, B]) check(noData bool) error {
	errs := r.errs
	if noData {
		errs = append(errs, errNoData)
	}
	if err := r.keep.err; err != nil {
		errs = append(errs, fmt.Errorf("keep: %s: %w", r.keep, err))
	}
	errs = append(errs, abilities.Misdeclared(reflect.TypeFor[*B](), "the batch", reflect.TypeFor[abilities.Sized](), reflect.TypeFor[abilities.InEpoch]()))
	r.batch = new(B) // an abandoned source must not hold the run
	r.size = sizer(r.batch)
	for i := range r.tasks {
		t := &r.tasks[i]
		var unset error
		if t.when.zero() {
			unset = errNoSchedule
		}
		if err := errors.Join(t.when.err, unset, t.err, r.impossible(t.when)); err != nil {
			errs = append(errs, fmt.Errorf("task %d (%s): %w", i+1, t.String(), err))
		}
	}
	for i := range r.hooks {
		h := &r.hooks[i]
		if err := errors.Join(h.When.err, h.Err, r.impossible(h.When)); err != nil {
			errs = append(errs, fmt.Errorf("%s %d (%s): %w", h.kind(), h.number, h.String(), err))
		}
	}
	return errors.Join(errs...)
}

func (r *run[S, B]) impossible(when Schedule) error {
	if !r.notReached(when) || !when.isNever(nil) {
		return nil
	}
	return errors.New("never due, however long the run is: its parts exclude each other; to leave it out, use loop.Never")
}

func (r *run[S, B]) unreached() (names []string) {
	for i := range r.tasks {
		if t := &r.tasks[i]; r.notReached(t.when) {
			names = append(names, fmt.Sprintf("task %d (%s)", i+1, t.String()))
		}
	}
	for i := range r.hooks {
		if h := &r.hooks[i]; r.notReached(h.When) {
			names = append(names, fmt.Sprintf("%s %d (%s)", h.kind(), h.number, h.String()))
		}
	}
	return names
}

func (r *run[S, B]) notReached(when Schedule) bool {
	return when.err == nil && when.rule != nil && r.until != nil && r.until.Length() > 0 && when.isNever(r.until)
}

func (r *run[S, B]) logUnreached(ctx context.Context, job Job) {
	if job != nil && job.Rank() > 0 {
		return
	}
	for _, name := range r.unreached() {
		slog.InfoContext(ctx, "loop: not due in this run", "what", name, "until", r.until.String())
	}
}

func sizer[B any](batch *B) func() int {
	// allocates nothing
	if sized, ok := any(batch).(abilities.Sized); ok {
		return sized.Samples
	}
	t := reflect.TypeFor[B]()
	if t.Kind() != reflect.Interface && !t.Implements(reflect.TypeFor[abilities.Sized]()) {
		return nil
	}
	return func() int { // B is a pointer or an interface
		if sized, ok := as[abilities.Sized](*batch, nil); ok {
			return sized.Samples()
		}
		return 1
	}
}

func errNegative(samples int64) error {
	return fmt.Errorf("a batch must not have a negative number of samples, got %d", samples)
}

type expectedEntries struct {
	expected []expectedEntry
	pending  int
	done     []bool
}

type expectedEntry struct{ entry, label string }

func (e *expectedEntries) start(hooks []hook, tasks int) {
	for i := range hooks {
		h := &hooks[i]
		if h.Entry != "" {
			e.expected = append(e.expected, expectedEntry{h.Entry, h.String()})
		}
		for _, name := range h.Needs {
			e.expected = append(e.expected, expectedEntry{name, onEach(name, h.Name)})
		}
	}
	if len(e.expected) > 0 {
		e.pending, e.done = tasks, make([]bool, tasks)
	}
}

func (e *expectedEntries) ran(task int) {
	if e.pending > 0 && !e.done[task] {
		e.done[task] = true
		e.pending--
	}
}

func (e *expectedEntries) check(latest Logs) (where string, err error) {
	if len(e.expected) == 0 || e.pending > 0 {
		return "", nil
	}
	for _, w := range e.expected {
		if _, err := latest.Get(w.entry); err != nil {
			return w.label + ": all tasks had a turn", err
		}
	}
	e.expected = nil
	return "", nil
}
