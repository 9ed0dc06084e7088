package loop

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Schedule selects the iterations in which a task or callback is due: a pure function of the elapsed before and after
// an iteration. The zero Schedule is never due.
type Schedule struct {
	_            [0]func() // some schedules have functions
	name         string
	rule         rule
	err          error
	starts, ends bool
	compound     bool
}

type rule interface {
	due(before, after Elapsed) bool
	needs() needs
}

type needs struct {
	samples, epochs, clock bool
	// joint: it may be due in a range of steps and in none of them ("every 2 steps and every 3 steps"). inverse: in a
	// step and not in the range ("not every 2 steps"). isNever, which asks about the whole run as one range, trusts
	// neither.
	joint, inverse bool
}

func (n needs) and(m needs) needs {
	return needs{n.samples || m.samples, n.epochs || m.epochs, n.clock || m.clock, n.joint || m.joint, n.inverse || m.inverse}
}

func needsOf(p Period) needs {
	_, isSamples := p.(Samples)
	return needs{samples: isSamples, epochs: byEpochs(p), clock: byClock(p)}
}

const noMark = math.MaxInt64

var (
	// Never is due in no iteration.
	Never = Schedule{name: "never"}
	// EachStep is due in every iteration.
	EachStep = Schedule{name: "each step", rule: always{}}
	// AtStart is due once, before a run's first iteration. At the start of a run that continues another ([Continue],
	// checkpoint.Resume), callbacks are due, tasks are not.
	AtStart = Schedule{name: "at start", starts: true}
	// AtEnd is due once, after the last iteration of a run that made one and ends without an error or [ErrPause].
	AtEnd = Schedule{name: "at end", ends: true}
)

// AndAtStart returns s, due also before the first iteration.
func (s Schedule) AndAtStart() Schedule {
	if s.starts {
		return s
	}
	s = s.extend("at start")
	s.starts = true
	return s
}

// AndAtEnd returns s, due also as [AtEnd], even if s was due in the last iteration.
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

// When returns a schedule that is due where due, a pure function of the elapsed before and after the iteration, returns
// true. A run calls it in every iteration. When also calls it, with trial values of 1 to 1e9 steps, to find out whether
// it depends on epochs ([Elapsed]). Errors contain the name.
func When(name string, due func(before, after Elapsed) bool) Schedule {
	name = cmp.Or(name, "when")
	if due == nil {
		return Schedule{name: name, err: fmt.Errorf("schedule %q has no function", name)}
	}
	return Schedule{name: name, rule: when{name, due, dependsOnEpochs(due)}}
}

// String returns the name: "every 100 steps".
func (s Schedule) String() string {
	if s.name == "" {
		return Never.name
	}
	return s.name
}

// Due reports whether the schedule is due in an iteration from before to after.
func (s Schedule) Due(before, after Elapsed) bool { return s.rule != nil && s.rule.due(before, after) }

func (s *Schedule) always() bool {
	_, each := s.rule.(always)
	return each
}

// Possible is false for a schedule that by its form is due at most at the end, as [Never] and [AtEnd].
func (s Schedule) Possible() bool { return s.rule != nil || s.starts }

// Err returns the mistake in the schedule or its parts, or nil. [Loop.Run] returns it.
func (s Schedule) Err() error { return s.err }

func (s Schedule) inside() error {
	if s.err == nil || errors.As(s.err, new(*partError)) {
		return s.err
	}
	return &partError{s.String(), s.err}
}

type partError struct {
	part string
	err  error
}

func (e *partError) Error() string { return e.part + ": " + e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

func (s Schedule) part() string {
	if s.compound {
		return "(" + s.String() + ")"
	}
	return s.String()
}

func (s Schedule) startsAt() bool { return s.starts }
func (s Schedule) endsAt() bool   { return s.ends }

func (s Schedule) zero() bool {
	return s.name == "" && s.rule == nil && !s.starts && !s.ends && s.err == nil
}

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
	return found, true
}

const searched = 100_000

// s is certainly not due before until. Only steps bound a run: its last iteration may exceed samples and time.
func (s Schedule) isNever(until Period) bool {
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
	epochs bool
}

func dependsOnEpochs(f func(before, after Elapsed) bool) (depends bool) {
	_ = shield.Run(func() error { // the run reports a panic, with the schedule's name
		for from := int64(1); from <= 1e9; from *= 10 { // the function may look at the rest of Elapsed too
			for e := range int64(100) {
				at := func(n int64) Elapsed {
					return Elapsed{Steps: n, Samples: n, Epochs: e, Time: time.Duration(n) * time.Second, Date: Date(4 * n * int64(time.Second))}
				}
				before, within := at(from+e), at(from+e+1)
				ended := within
				ended.Epochs++
				if depends = f(before, within) != f(before, ended); depends {
					return nil
				}
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

func byClock(p Period) bool {
	switch p.(type) {
	case Time, Date:
		return true
	}
	return false
}

func byEpochs(p Period) bool {
	_, is := p.(Epochs)
	return is
}

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
