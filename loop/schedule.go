package loop

import "fmt"

// Schedule says when a task or a watcher runs. It is a value: it keeps nothing between turns, so it can be shared by
// tasks and loops. The zero Schedule is never due.
type Schedule struct {
	name string
	// due tells whether the schedule fires in a turn that takes the run from before to after.
	due func(before, after Elapsed) bool
	err error
}

// EachStep is due in every turn.
var EachStep = Schedule{name: "each step", due: func(_, _ Elapsed) bool { return true }}

// Every is due each time another p is full: Every(Steps(100)) after 100, 200, … steps. Samples and time may jump over
// a multiple; it is then due once, in the turn that crosses it, and the next one stays where it was.
//
// Ciclo measures samples and time from the last firing, so that its period drifts; here it does not, because a
// schedule keeps nothing.
func Every(p Period) Schedule {
	s, n := periodic("every", p)
	if s.err == nil {
		s.due = func(before, after Elapsed) bool { return p.of(after)/n > p.of(before)/n }
	}
	return s
}

// At is due once, in the turn that reaches p.
func At(p Period) Schedule {
	s, _ := periodic("at", p)
	if s.err == nil {
		s.due = func(before, after Elapsed) bool { return !before.Reached(p) && after.Reached(p) }
	}
	return s
}

// When is due where the given function of the time before and after the turn says so. The function must be pure;
// the name stands in errors.
func When(name string, due func(before, after Elapsed) bool) Schedule {
	if due == nil {
		return Schedule{name: name, err: fmt.Errorf("schedule %q has no function", name)}
	}
	return Schedule{name: name, due: due}
}

// String is the name of the schedule, as it stands in errors.
func (s Schedule) String() string {
	if s.name == "" {
		return "never"
	}
	return s.name
}

// Due tells whether the schedule fires in a turn that takes a run from before to after.
func (s Schedule) Due(before, after Elapsed) bool { return s.due != nil && s.due(before, after) }

// Err tells what is wrong with the schedule, nil if nothing is. [Loop.Run] refuses a schedule with an error.
func (s Schedule) Err() error { return s.err }

func periodic(word string, p Period) (Schedule, int64) {
	if p == nil {
		return Schedule{name: word, err: fmt.Errorf("schedule %q has no period", word)}, 0
	}
	s := Schedule{name: word + " " + p.String()}
	if p.length() <= 0 {
		s.err = fmt.Errorf("period must be positive, got %s", p)
	}
	return s, p.length()
}
