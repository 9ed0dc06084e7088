package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/loop"
)

// event is a call of code outside the loop, with the values that it could see.
type event struct{ call, latest string }

type outcome struct {
	state  uint64
	at     loop.Elapsed // steps and samples
	reason loop.Reason
	stop   string   // the text of Result.Stop
	errs   []string // all are in the text of the error
	rows   []string
	all    []string // those that a bound has dropped too
	trace  []event
}

var errBoom, errHome = errors.New("boom"), errors.New("the user went home")

// reference follows a program as the documentation has it, one step after the other, without a thought of speed.
type reference struct {
	program
	outcome
	logs      []logged // of this turn
	latest    []logged // of this run
	ran       map[int]bool
	cancelled bool
	firstStop string
	begun     bool
	continues bool // another run
}

// follow runs the program from where an earlier outcome ended.
func (p program) follow(from outcome) outcome {
	r := &reference{program: p, ran: map[int]bool{}, continues: from.at.Steps > 0 || len(from.rows) > 0,
		outcome: outcome{state: from.state, at: from.at, rows: slices.Clone(from.rows), all: slices.Clone(from.all)}}
	if err := r.turns(); err != "" {
		r.errs = append(r.errs, err)
	}
	r.end()
	if r.reason == loop.Stopped {
		r.stop = r.firstStop
	}
	return r.outcome
}

func (r *reference) turns() (err string) {
	if r.at.Reached(r.until) {
		r.reason = loop.UntilReached
		return ""
	}
	for i := int(r.at.Steps); ; i++ {
		home := fmt.Sprintf("loop: step %d: cancelled: %s", r.at.Steps, errHome)
		if r.cancelled {
			r.reason = loop.Cancelled
			return home
		}
		fault := ""
		if i == r.faultAt {
			fault = r.fault
		}
		switch {
		case fault == "panic":
			return r.fail(r.at.Steps+1, "data", "panic: boom")
		case fault == "error":
			return r.fail(r.at.Steps+1, "data", "boom")
		case fault == "hang":
			r.reason = loop.Cancelled
			return home + "; " + loop.ErrSourceLeft.Error()
		case fault == "cancel" && i >= len(r.sizes):
			r.reason = loop.Cancelled
			return home
		case i >= len(r.sizes):
			return r.mark(i-1, loop.Schedule.EndsAt)
		}
		r.cancelled = r.cancelled || fault == "cancel" // a batch that is there has its turn
		if !r.begun {
			r.begun = true
			if err := r.mark(i, loop.Schedule.StartsAt); err != "" {
				return err
			}
		}
		if r.reason != loop.Stopped {
			if fault == "negative" {
				return r.fail(r.at.Steps+1, "data", "a batch must not have a negative number of samples, got -1")
			}
			if err := r.oneTurn(batch{i, r.sizes[i]}); err != "" {
				return err
			}
		}
		if r.reason != loop.DataEnded {
			return r.mark(i, loop.Schedule.EndsAt)
		}
	}
}

// oneTurn counts the step, runs tasks, commits, runs watchers, and looks whether that was the last turn.
func (r *reference) oneTurn(b batch) string {
	before, changed, stop := r.at, false, false
	r.at.Steps, r.at.Samples, r.logs = r.at.Steps+1, r.at.Samples+int64(b.size), nil
	for i := range r.tasks {
		if !r.tasks[i].when.Due(before, r.at) {
			continue
		}
		if err := r.task(i, b, &stop); err != "" {
			r.note()
			switch {
			case !changed:
				r.at = before // not in the state, so not counted
			case r.keep.Due(before, r.at):
				r.commit(b.size)
			}
			return err
		}
		changed = true
	}
	r.note()
	if r.keep.Due(before, r.at) {
		r.commit(b.size)
	}
	err := r.unknownEntry()
	if err == "" {
		err = r.watch(&stop, func(s loop.Schedule) bool { return s.Due(before, r.at) })
	}
	switch {
	case err != "" && !changed:
		r.at = before
	case err != "":
	case stop:
		r.reason = loop.Stopped
	case r.at.Reached(r.until):
		r.reason = loop.UntilReached
	}
	return err
}

// mark handles the start or the end: no iteration, but a row, for any Keep. A run that continues another has no tasks
// at its start.
func (r *reference) mark(i int, is func(loop.Schedule) bool) string {
	if !r.begun {
		return ""
	}
	stop := false
	r.logs = nil
	for k := range r.tasks {
		if is(r.tasks[k].when) && !(r.continues && is(loop.AtStart)) {
			if err := r.task(k, batch{i, r.sizes[i]}, &stop); err != "" {
				r.note()
				r.commit(0)
				return err
			}
		}
	}
	r.note()
	r.commit(0)
	err := r.unknownEntry()
	if err == "" {
		err = r.watch(&stop, is)
	}
	if stop && r.reason == loop.DataEnded && is(loop.AtStart) {
		r.reason = loop.Stopped
	}
	return err
}

func (r *reference) task(i int, b batch, stop *bool) string {
	t := &r.tasks[i]
	r.ran[i] = true
	var seen []logged
	if t.turn {
		seen = r.logs
		r.trace = append(r.trace, event{call: turnCall(t.name, b, r.state, r.at, seen)})
	} else {
		r.trace = append(r.trace, event{call: stepCall(t.name, b, r.state)})
	}
	if b.index == t.at && t.does != "stop" {
		if err := r.happens(t, stop); err != "" {
			return err
		}
	}
	state, logs := t.computed(r.state, b, seen)
	r.state = state
	r.logs = merged(r.logs, logs)
	if b.index == t.at && t.does == "stop" {
		return r.happens(t, stop)
	}
	return ""
}

// happens makes the fault of a part.
func (r *reference) happens(p *part, stop *bool) string {
	switch p.does {
	case "error":
		return r.fail(r.at.Steps, p.label(), "boom")
	case "panic":
		return r.fail(r.at.Steps, p.label(), "panic: boom")
	case "cancel":
		r.cancelled = true
	case "stop":
		*stop = true
		if r.firstStop == "" {
			r.firstStop = fmt.Sprintf("loop: step %d: %s: stop", r.at.Steps, p.label())
		}
	}
	return ""
}

func (r *reference) watch(stop *bool, due func(loop.Schedule) bool) string {
	for i := range r.watchers {
		w := &r.watchers[i]
		if w.entry != "" && !has(r.logs, w.entry) || w.entry == "" && !due(w.when) {
			continue
		}
		r.trace = append(r.trace, watchCall(w.name, r.at, r.state, r.logs, r.latest, len(r.rows)))
		if int(r.at.Steps) == w.at {
			if err := r.happens(w, stop); err != "" {
				return err
			}
		}
	}
	return ""
}

// unknownEntry fails if all tasks had a turn and none has logged a watched name.
func (r *reference) unknownEntry() string {
	for i := range r.watchers {
		w := &r.watchers[i]
		if w.entry != "" && len(r.ran) == len(r.tasks) && !has(r.latest, w.entry) {
			r.errs = append(r.errs, fmt.Sprintf("loop: step %d: ", r.at.Steps))
			r.reason = loop.Failed
			return fmt.Sprintf("%s: all tasks had a turn: ", w.label())
		}
	}
	return ""
}

func (r *reference) end() {
	reason, failed := r.reason, len(r.errs) > 0
	for i := range slices.Backward(r.watchers) {
		w := &r.watchers[i]
		r.trace = append(r.trace, endCall(w.name, reason, failed, watchCall(w.name, r.at, r.state, r.logs, r.latest, len(r.rows))))
		if w.does == "end" {
			r.errs = append(r.errs, fmt.Sprintf("loop: at the end: step %d: %s: boom", r.at.Steps, w.label()))
			if r.reason != loop.Cancelled {
				r.reason = loop.Failed
			}
		}
	}
}

func (r *reference) fail(step int64, where, what string) string {
	r.reason = loop.Failed
	return fmt.Sprintf("loop: step %d: %s: %s", step, where, what)
}

func (r *reference) note() { r.latest = merged(r.latest, r.logs) }

func (r *reference) commit(size int) {
	if len(r.logs) == 0 {
		return
	}
	r.all = append(r.all, rowOf(r.at, size, r.logs))
	r.rows = r.all
	if r.limit > 0 {
		r.rows = thinned(r.all, r.limit)
	}
}

// The visible arguments of a call, as text.

func stepCall(name string, b batch, state uint64) string {
	return fmt.Sprintf("%s: batch %d, state %x", name, b.index, state)
}

func turnCall(name string, b batch, state uint64, at loop.Elapsed, logs []logged) string {
	return fmt.Sprintf("%s, %d steps, %d samples, logs %v", stepCall(name, b, state), at.Steps, at.Samples, logs)
}

func watchCall(name string, at loop.Elapsed, state uint64, logs, latest []logged, rows int) event {
	return event{fmt.Sprintf("%s: %d steps, %d samples, state %x, logs %v, %d rows", name, at.Steps, at.Samples, state, logs, rows), fmt.Sprint(latest)}
}

func endCall(name string, reason loop.Reason, failed bool, e event) event {
	e.call = fmt.Sprintf("end of %s: %s, failed %t; %s", name, reason, failed, e.call)
	return e
}

func rowOf(at loop.Elapsed, size int, logs []logged) string {
	logs = slices.Clone(logs)
	slices.SortFunc(logs, func(a, b logged) int { return strings.Compare(a.name, b.name) })
	return fmt.Sprintf("%d steps, %d samples, batch of %d: %v", at.Steps, at.Samples, size, logs)
}

func merged(into, logs []logged) []logged {
	into = slices.Clone(into)
	for _, l := range logs {
		if i := slices.IndexFunc(into, func(x logged) bool { return x.name == l.name }); i >= 0 {
			into[i] = l
		} else {
			into = append(into, l)
		}
	}
	return into
}

func has(logs []logged, name string) bool {
	return slices.ContainsFunc(logs, func(l logged) bool { return l.name == name })
}
