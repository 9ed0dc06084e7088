package loop

import (
	"errors"
	"fmt"
	"reflect"
)

// After returns a schedule due from the iteration that reaches p on.
func After(p Period) Schedule {
	if err := checkPoint("after", p); err != nil {
		return Schedule{name: named("after", p), err: err}
	}
	return Schedule{name: named("after", p), rule: reached{p}}
}

// Then returns a schedule that is s up to a point from the run's start, and next after it. next counts the
// point's unit from the point: Never.Then(Steps(1000), Every(Steps(100))) is due after 1100, 1200, … steps. Other units
// count from the run's start.
//
// The iteration that reaches the point belongs to s. If samples or time cross it, s decides about the part before,
// next about the rest. In s.Then(p, t).Then(q, u), q must be after p if their units are equal.
func (s Schedule) Then(point Period, next Schedule) Schedule {
	name := s.part() + "; "
	earlier, continues := s.rule.(phases)
	switch {
	case continues && !s.starts && !s.ends:
		name = s.name + "; "
	case s.rule == nil && s.err == nil:
		name = ""
	}
	name += named("after", point) + ", " + next.part()
	err := errors.Join(phaseErr(s), checkPoint("after", point), phaseErr(next))
	if err == nil && continues && !earlier.before(point) {
		err = fmt.Errorf("points must be ascending, got %s after %s", point, earlier.point)
	}
	if err != nil {
		return Schedule{name: name, compound: true, err: err}
	}
	return Schedule{name: name, compound: true, rule: phases{s, point, next}}
}

var errPhaseEdge = errors.New("a phase has no start and end of the run; put AndAtStart and AndAtEnd after the whole schedule")

// phaseErr also refuses AndAtStart and AndAtEnd, which could mean the run or the phase.
func phaseErr(s Schedule) error {
	if s.starts || s.ends {
		return errors.Join(s.inside(), &partError{s.String(), errPhaseEdge})
	}
	return s.inside()
}

type reached struct{ p Period }

func (r reached) due(_, after Elapsed) bool { return after.Reached(r.p) }

func (r reached) needs() needs { return needsOf(r.p) }

type phases struct {
	first Schedule
	point Period
	next  Schedule
}

func (p phases) before(later Period) bool {
	return reflect.TypeOf(p.point) != reflect.TypeOf(later) || !p.point.with(Elapsed{}, p.point.Length()).Reached(later)
}

func (p phases) due(before, after Elapsed) bool {
	if before.Reached(p.point) {
		return p.next.Due(p.within(before), p.within(after))
	}
	if p.point.Of(after) <= p.point.Length() {
		return p.first.Due(before, after)
	}
	return p.first.Due(before, p.point.with(after, p.point.Length())) || p.next.Due(p.within(before), p.within(after))
}

func (p phases) needs() needs { return p.first.needs().and(p.next.needs()).and(needsOf(p.point)) }

func (p phases) within(e Elapsed) Elapsed {
	return p.point.with(e, max(p.point.Of(e)-p.point.Length(), 0))
}
