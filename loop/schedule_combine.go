package loop

import (
	"errors"
	"slices"
	"strings"
)

// Or returns a schedule due where s or another is, also at the start and the end.
func (s Schedule) Or(others ...Schedule) Schedule { return combine(false, " or ", s, others) }

// And returns a schedule due where s and all others are, also at the start and the end.
func (s Schedule) And(others ...Schedule) Schedule { return combine(true, " and ", s, others) }

// Not returns a schedule due in iterations where s is not, never at the start or the end.
func (s Schedule) Not() Schedule {
	if s.err != nil {
		return Schedule{name: "not " + s.part(), err: s.inside()}
	}
	return Schedule{name: "not " + s.part(), rule: not{s}}
}

func combine(all bool, between string, first Schedule, others []Schedule) Schedule {
	parts := slices.Concat([]Schedule{first}, others)
	s := Schedule{compound: true, starts: first.starts, ends: first.ends}
	names, errs := make([]string, len(parts)), make([]error, len(parts))
	for i, p := range parts {
		names[i], errs[i] = p.part(), p.inside()
		if all {
			s.starts, s.ends = s.starts && p.starts, s.ends && p.ends
		} else {
			s.starts, s.ends = s.starts || p.starts, s.ends || p.ends
		}
	}
	s.name, s.err = strings.Join(names, between), errors.Join(errs...)
	if s.err == nil {
		s.rule = combined{parts, all}
	}
	return s
}

type combined struct {
	parts []Schedule
	all   bool
}

func (c combined) due(before, after Elapsed) bool {
	for i := range c.parts {
		if c.parts[i].Due(before, after) != c.all {
			return !c.all
		}
	}
	return c.all
}

func (c combined) needs() needs {
	n := needs{joint: c.all}
	for i := range c.parts {
		n = n.and(c.parts[i].needs())
	}
	return n
}

type not struct{ s Schedule }

func (n not) due(before, after Elapsed) bool { return !n.s.Due(before, after) }

func (n not) needs() needs { return n.s.needs().and(needs{inverse: true}) }
