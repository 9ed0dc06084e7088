package loop

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Schedule says in which turns a task or a callback is due. It is a value that keeps nothing between turns, so it can
// be shared by tasks and loops, and is the same in a resumed run. The zero Schedule is never due.
type Schedule struct {
	_    [0]func() // schedules cannot be compared, as some have functions
	name string
	rule rule // nil if never due
	err  error
	// starts and ends: it is due before the first, after the last turn of a run.
	starts, ends bool
	// compound names are put in brackets within a longer one.
	compound bool
}

// rule is a pure function of what had elapsed before and after a turn.
type rule interface {
	due(before, after Elapsed) bool
	// needs says what it depends on besides steps.
	needs() needs
}

type needs struct {
	samples, epochs, clock bool
	// A joint rule may be due in a long turn and in no part of it, an inverse one in a part of it and not in the whole.
	joint, inverse bool
}

func (n needs) and(m needs) needs {
	return needs{n.samples || m.samples, n.epochs || m.epochs, n.clock || m.clock, n.joint || m.joint, n.inverse || m.inverse}
}

func needsOf(p Period) needs {
	_, isSamples := p.(Samples)
	return needs{samples: isSamples, epochs: byEpochs(p), clock: byClock(p)}
}

// never is a mark that is not reached.
const never = math.MaxInt64

var (
	// Never is due in no turn.
	Never = Schedule{name: "never"}
	// EachStep is due in every turn.
	EachStep = Schedule{name: "each step", rule: always{}}
	// AtStart is due once, before the first turn of a run.
	AtStart = Schedule{name: "at start", starts: true}
	// AtEnd is due once, after the last turn of a run.
	AtEnd = Schedule{name: "at end", ends: true}
)

// AndAtStart is s, due also before the first turn of a run.
func (s Schedule) AndAtStart() Schedule {
	if s.starts {
		return s
	}
	s = s.extend("at start")
	s.starts = true
	return s
}

// AndAtEnd is s, due also after the last turn of a run, even if it was due in that turn.
func (s Schedule) AndAtEnd() Schedule {
	if s.ends {
		return s
	}
	s = s.extend("at end")
	s.ends = true
	return s
}

func (s Schedule) extend(word string) Schedule {
	s.err = s.inside()
	if s.rule == nil && !s.starts && !s.ends && s.err == nil {
		s.name = word
		return s
	}
	s.name, s.compound = s.name+", "+word, true
	return s
}

// When is due in the turns for which a function of what had elapsed before and after the turn returns true. The
// function must be pure. It is called in every turn, and by When itself, which finds out whether it depends on epochs:
// a run counts these only where something does. The name appears in errors.
func When(name string, due func(before, after Elapsed) bool) Schedule {
	name = cmp.Or(name, "when")
	if due == nil {
		return Schedule{name: name, err: fmt.Errorf("schedule %q has no function", name)}
	}
	return Schedule{name: name, rule: when{name, due, dependsOnEpochs(due)}}
}

// String is the name of the schedule, as in errors: "every 100 steps".
func (s Schedule) String() string {
	if s.name == "" {
		return Never.name
	}
	return s.name
}

// Due reports whether the schedule is due in a turn that takes a run from before to after.
func (s Schedule) Due(before, after Elapsed) bool { return s.rule != nil && s.rule.due(before, after) }

// always is Due for [EachStep], without the copies for a call.
func (s *Schedule) always() bool {
	_, each := s.rule.(always)
	return each
}

// Possible reports whether the schedule is due at the start, or may be due in some turn.
func (s Schedule) Possible() bool { return s.rule != nil || s.starts }

// Err is what is wrong with the schedule, nil if nothing is. A combined schedule has the errors of its parts.
// [Loop.Run] returns it.
func (s Schedule) Err() error { return s.err }

// inside is the error for a schedule that s is a part of; it names the part.
func (s Schedule) inside() error {
	if s.err == nil || errors.As(s.err, new(*partError)) {
		return s.err
	}
	return &partError{s.String(), s.err}
}

// partError names the part of a schedule that is wrong, the innermost one.
type partError struct {
	part string
	err  error
}

func (e *partError) Error() string { return e.part + ": " + e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// part is the name of s within a longer one.
func (s Schedule) part() string {
	if s.compound {
		return "(" + s.String() + ")"
	}
	return s.String()
}

func (s Schedule) startsAt() bool { return s.starts }
func (s Schedule) endsAt() bool   { return s.ends }

// zero reports whether the schedule was left out.
func (s Schedule) zero() bool {
	return s.name == "" && s.rule == nil && !s.starts && !s.ends && s.err == nil
}

// firstSteps finds up to n steps after from in which the schedule is due, and whether there may be more. It tries at
// most searched steps.
func (s Schedule) firstSteps(from int64, until Period, n int) (found []int64, more bool) {
	if s.rule == nil {
		return nil, false
	}
	last, isSteps := until.(Steps)
	for step := from + 1; step <= from+searched; step++ {
		if isSteps && step > int64(last) {
			return found, false
		}
		if !s.Due(Elapsed{Steps: step - 1}, Elapsed{Steps: step}) {
			continue
		}
		if len(found) == n {
			return found, true
		}
		found = append(found, step)
	}
	return found, true // perhaps
}

// searched bounds the steps that firstSteps tries.
const searched = 100_000

// never reports that the schedule is surely not due in a run from zero to until, nor at its start or end. Only an until
// in steps bounds a run: the last turn may go beyond any number of samples and any time.
func (s Schedule) never(until Period) bool {
	const all = 1 << 60
	last := Elapsed{Steps: all, Samples: all, Epochs: all, Time: all, Date: 4 * all}
	end, isSteps := until.(Steps)
	if isSteps {
		last.Steps = int64(end)
	}
	needs := s.needs()
	switch {
	case s.starts || s.ends:
		return false
	case !needs.inverse && !s.Due(Elapsed{}, last):
		return true
	case !needs.inverse && !needs.joint, needs.samples, needs.epochs, needs.clock, !isSteps:
		return false
	}
	found, more := s.firstSteps(0, until, 1)
	return len(found) == 0 && !more
}

func (s Schedule) needs() needs {
	if s.rule == nil {
		return needs{}
	}
	return s.rule.needs()
}

type always struct{}

func (always) due(_, _ Elapsed) bool { return true }
func (always) needs() needs          { return needs{} }

type when struct {
	name   string
	f      func(before, after Elapsed) bool
	epochs bool // it depends on them
}

// dependsOnEpochs reports whether the answer of a function changes with the epochs alone.
func dependsOnEpochs(f func(before, after Elapsed) bool) (depends bool) {
	_ = shield.Run(func() error { // a run tells of a panic, with the schedule's name
		for e := range int64(100) {
			before := Elapsed{Steps: 100 + e, Samples: 100 + e, Epochs: e}
			within := Elapsed{Steps: 101 + e, Samples: 101 + e, Epochs: e}
			ended := within
			ended.Epochs++
			if depends = f(before, within) != f(before, ended); depends {
				break
			}
		}
		return nil
	})
	return depends
}

func (w when) due(before, after Elapsed) bool {
	returned := false
	defer func() {
		if !returned {
			panic(&scheduleFault{w.name, shield.Caught(recover())})
		}
	}()
	due := w.f(before, after)
	returned = true
	return due
}

func (w when) needs() needs {
	return needs{samples: true, epochs: w.epochs, clock: true, inverse: true}
}

// byClock reports whether a period is measured by the clock.
func byClock(p Period) bool {
	switch p.(type) {
	case Time, Date:
		return true
	}
	return false
}

// byEpochs reports whether a period is counted in epochs.
func byEpochs(p Period) bool {
	_, is := p.(Epochs)
	return is
}

// checkPoint is what is wrong with a period at which something begins or happens, checkLength with one that repeats.
func checkPoint(word string, p Period) error {
	d, isDate := p.(Date)
	switch {
	case p == nil:
		return fmt.Errorf("schedule %q has no period", word)
	case isDate && d <= 0:
		return fmt.Errorf("the date is not set or before 1970, got %s", p)
	case !isDate && p.Length() <= 0:
		return fmt.Errorf("period must be positive, got %s", p)
	}
	return nil
}

func checkLength(word string, p Period) error {
	if _, isDate := p.(Date); isDate {
		return fmt.Errorf("a date has no length to repeat: got %s; use At or After", p)
	}
	return checkPoint(word, p)
}
