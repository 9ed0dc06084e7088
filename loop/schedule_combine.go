package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Any is due where at least one of the schedules is: in turns, at the start and at the end. None at all is an error.
func Any(schedules ...Schedule) Schedule {
	s := combine("any", " or ", schedules)
	for _, part := range schedules {
		s.starts, s.ends = s.starts || part.starts, s.ends || part.ends
	}
	if s.err == nil {
		s.rule = oneOf(slices.Clone(schedules)) // the list is the caller's
	}
	return s
}

// All is due where each of the schedules is: in turns, at the start and at the end. None at all is an error.
func All(schedules ...Schedule) Schedule {
	s := combine("all", " and ", schedules)
	s.starts, s.ends = len(schedules) > 0, len(schedules) > 0
	for _, part := range schedules {
		s.starts, s.ends = s.starts && part.starts, s.ends && part.ends
	}
	if s.err == nil {
		s.rule = eachOf(slices.Clone(schedules))
	}
	return s
}

// Not is due in the turns in which s is not. It is never due at the start or the end, which are no turns.
func Not(s Schedule) Schedule {
	if s.err != nil {
		return Schedule{name: "not " + s.part(), err: s.inside()}
	}
	return Schedule{name: "not " + s.part(), rule: not{s}}
}

// combine names the schedules and joins their errors.
func combine(word, between string, schedules []Schedule) Schedule {
	if len(schedules) == 0 {
		return Schedule{name: word, err: fmt.Errorf("%s of no schedules", word)}
	}
	names, errs := make([]string, len(schedules)), make([]error, len(schedules))
	for i, s := range schedules {
		names[i], errs[i] = s.part(), s.inside()
	}
	return Schedule{name: strings.Join(names, between), compound: true, err: errors.Join(errs...)}
}

type oneOf []Schedule

func (o oneOf) due(before, after Elapsed) bool {
	for i := range o {
		if o[i].Due(before, after) {
			return true
		}
	}
	return false
}

func (o oneOf) needs() needs { return needsOfAll(o) }

type eachOf []Schedule

func (e eachOf) due(before, after Elapsed) bool {
	for i := range e {
		if !e[i].Due(before, after) {
			return false
		}
	}
	return true
}

func (e eachOf) needs() needs { return needsOfAll(e).and(needs{joint: true}) }

type not struct{ s Schedule }

func (n not) due(before, after Elapsed) bool { return !n.s.Due(before, after) }

func (n not) needs() needs { return n.s.needs().and(needs{inverse: true}) }
