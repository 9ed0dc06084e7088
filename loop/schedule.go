package loop

import (
	"fmt"
	"math"
)

// Schedule says when a task or a callback runs. It is a value: it keeps nothing between turns, so it can be shared by
// tasks and loops, and a run that is resumed asks it the same questions. The zero Schedule is never due.
//
// Ciclo's schedules remember when they fired and must be copied by the loop; ours do not, because what remembers
// cannot be resumed.
type Schedule struct {
	_    [0]func() // schedules do not compare: some have functions
	name string
	rule rule // nil if never due
	err  error
	// starts and ends say that it is due also outside of turns.
	starts, ends bool
	// compound names are put in brackets where they become part of a longer one.
	compound bool
}

// rule is a pure function of the time before and after a turn.
type rule interface {
	due(before, after Elapsed) bool
	// needs says what it looks at besides steps.
	needs() needs
}

type needs struct {
	samples, clock bool
	// A joint rule may be due in a long turn and in no part of it, an inverse one in a part and not in the whole.
	joint, inverse bool
}

func (n needs) and(m needs) needs {
	return needs{n.samples || m.samples, n.clock || m.clock, n.joint || m.joint, n.inverse || m.inverse}
}

func needsOf(p Period) needs {
	_, isSamples := p.(Samples)
	return needs{samples: isSamples, clock: timed(p)}
}

func needsOfAll(schedules []Schedule) (n needs) {
	for _, s := range schedules {
		n = n.and(s.needs())
	}
	return n
}

// never is a mark that does not come.
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

// AndAtStart is s, and due also before the first turn. Ciclo's periods fire on the very first batch, since it counts
// before a step; here that is said, because a periodic task should not run on a model that has seen one batch only.
func (s Schedule) AndAtStart() Schedule {
	s = s.extend("at start")
	s.starts = true
	return s
}

// AndAtEnd is s, and due also after the last turn, whether or not it was due in that turn.
func (s Schedule) AndAtEnd() Schedule {
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

// When is due where the given function of the time before and after the turn says so. The function must be pure, and
// is asked in every turn, for it cannot tell when it is due next; the name stands in errors.
func When(name string, due func(before, after Elapsed) bool) Schedule {
	if name == "" {
		name = "when"
	}
	if due == nil {
		return Schedule{name: name, err: fmt.Errorf("schedule %q has no function", name)}
	}
	return Schedule{name: name, rule: when{name, due}}
}

// String is the name of the schedule, as it stands in errors: "every 100 steps".
func (s Schedule) String() string {
	if s.name == "" {
		return Never.name
	}
	return s.name
}

// Due tells whether the schedule fires in a turn that takes a run from before to after.
func (s Schedule) Due(before, after Elapsed) bool { return s.rule != nil && s.rule.due(before, after) }

// Possible tells that there may be turns in which the schedule is due, or that it is due at the start.
func (s Schedule) Possible() bool { return s.rule != nil || s.starts }

// Err tells what is wrong with the schedule, nil if nothing is. [Loop.Run] refuses a schedule with an error. What is
// put together of schedules has the errors of all of them.
func (s Schedule) Err() error { return s.err }

// inside is the error for a schedule that s becomes a part of: it names the part.
func (s Schedule) inside() error {
	if s.err == nil || s.compound {
		return s.err
	}
	return fmt.Errorf("%s: %w", s, s.err)
}

// part is the name of s within a longer one.
func (s Schedule) part() string {
	if s.compound {
		return "(" + s.String() + ")"
	}
	return s.String()
}

func (s Schedule) startsAt() bool { return s.starts }
func (s Schedule) endsAt() bool   { return s.ends }

// zero tells that nobody has set the schedule.
func (s Schedule) zero() bool {
	return s.name == "" && s.rule == nil && !s.starts && !s.ends && s.err == nil
}

// firstSteps gives up to n steps behind from in which the schedule is due, in turns of one step, and whether there may be
// others. It asks of each step, of so many at most.
func (s Schedule) firstSteps(from int64, until Period, n int) (found []int64, more bool) {
	if s.rule == nil {
		return nil, false
	}
	last, isSteps := until.(Steps)
	for step := from + 1; step <= from+lookedAt; step++ {
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

// lookedAt bounds the steps that are asked about.
const lookedAt = 100_000

// never tells that the schedule is surely not due in a run from nothing to until, neither at its start nor its end. Only
// an end in steps is known: the last turn may go beyond any number of samples, or any time.
func (s Schedule) never(until Period) bool {
	const all = 1 << 60
	last := Elapsed{Steps: all, Samples: all, Time: all, Date: 4 * all}
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
	case !needs.inverse && !needs.joint, needs.samples, needs.clock, !isSteps:
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
	name string
	f    func(before, after Elapsed) bool
}

func (w when) due(before, after Elapsed) bool {
	returned := false
	defer func() {
		if !returned {
			panic(&askFault{w.name, caught(recover())})
		}
	}()
	due := w.f(before, after)
	returned = true
	return due
}

func (when) needs() needs { return needs{samples: true, clock: true, inverse: true} }

// timed tells whether a period is measured by the clock, which goes on by itself.
func timed(p Period) bool {
	switch p.(type) {
	case Time, Date:
		return true
	}
	return false
}

// checkPoint tells what is wrong with a period that something begins or happens at, checkLength with one that repeats.
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
