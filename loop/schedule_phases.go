package loop

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// After is due in the turn that reaches p and in each turn after it. [Schedule.Then] and [Schedule.Every] begin a
// schedule there.
func After(p Period) Schedule {
	if err := checkPoint("after", p); err != nil {
		return Schedule{name: named("after", p), err: err}
	}
	return Schedule{name: named("after", p), rule: reached{p}}
}

// Then belongs to [After]: After(p).Then(s) is not due up to p, and from there on where s is, counted from p (see
// [Piecewise]). On any other schedule it is an error.
func (s Schedule) Then(next Schedule) Schedule {
	from, isAfter := s.rule.(reached)
	s = Schedule{name: s.String() + ", " + next.part(), compound: true, starts: s.starts, ends: s.ends,
		err: errors.Join(s.inside(), phaseErr(next))}
	switch {
	case s.err != nil:
	case !isAfter:
		s.err = errors.New("there is no point to begin at; only After(period) has Then and Every")
	default:
		s.rule, s.phase = phases{{then: Never}, {after: from.p, then: next}}, true
	}
	return s
}

// Every belongs to [After]: After(Steps(3)).Every(Steps(5)) is due after 8, 13, 18, … steps.
func (s Schedule) Every(p Period) Schedule { return s.Then(Every(p)) }

// phase is a schedule that is used from a point of the run on.
type phase struct {
	after Period
	then  Schedule
}

// Piecewise is base up to the first phase, then one phase after the other. A phase is made by [After] and Then. Points
// are counted from the start of the run and must be ascending, in one unit. A phase counts from its point in the unit
// of the point: After(Steps(1000)).Then(Every(Steps(100))) is due after 1100, 1200, … steps. Other units count from the
// start of the run: in that phase, Every(Time(time.Minute)) is due at whole minutes of the run.
//
// The turn that reaches a point belongs to the phase before. If samples or time jump over a point, each phase is asked
// about its part of the turn, so that no mark is lost however long a turn is.
func Piecewise(base Schedule, next ...Schedule) Schedule {
	list := phases{{then: base}}
	names, errs := []string{base.part()}, []error{phaseErr(base)}
	for i, s := range next {
		names = append(names, s.String())
		added, isPhases := s.rule.(phases)
		err := phaseErr(s)
		if err == nil && !s.phase {
			err = fmt.Errorf("expected After(period).Then(schedule), got %s", s)
		}
		if err == nil && isPhases {
			err = follows(list[len(list)-1].after, added[1].after)
			list = append(list, added[1])
		}
		if err != nil {
			errs = append(errs, &partError{fmt.Sprintf("phase %d", i+1), err})
		}
	}
	s := Schedule{name: strings.Join(names, "; "), compound: true, err: errors.Join(errs...)}
	if s.err == nil {
		s.rule = list
	}
	return s
}

// follows returns what is wrong with a phase that begins at a point, after one that begins at previous.
func follows(previous, begin Period) error {
	switch {
	case previous == nil:
	case reflect.TypeOf(previous) != reflect.TypeOf(begin):
		return fmt.Errorf("phases must be in one unit, got %s behind %s", begin, previous)
	case previous.with(Elapsed{}, previous.Length()).Reached(begin):
		return fmt.Errorf("phases must be ascending, got %s behind %s", begin, previous)
	}
	return nil
}

var errPhaseEdge = errors.New("a phase has no start and end of the run; put AndAtStart and AndAtEnd behind the whole schedule")

// phaseErr refuses AndAtStart and AndAtEnd too: it would not be clear whether they mean the run or the phase.
func phaseErr(s Schedule) error {
	if s.starts || s.ends {
		return errors.Join(s.inside(), &partError{s.String(), errPhaseEdge})
	}
	return s.inside()
}

// reached is due from a point on.
type reached struct{ p Period }

func (r reached) due(_, after Elapsed) bool { return after.Reached(r.p) }

func (r reached) needs() needs { return needsOf(r.p) }

// phases begin at their points, the first one at the start, and end where the next one begins.
type phases []phase

func (ps phases) due(before, after Elapsed) bool {
	for i := range ps {
		begin, end := ps.bounds(i)
		if end != nil && before.Reached(end) {
			continue
		}
		if begin != nil && !before.Reached(begin) && begin.Of(after) <= begin.Length() {
			return false // nor did the later ones begin
		}
		last := after
		if end != nil && last.Reached(end) {
			last = end.with(last, end.Length())
		}
		if ps[i].then.Due(within(begin, before), within(begin, last)) {
			return true
		}
	}
	return false
}

func (ps phases) needs() (n needs) {
	for _, p := range ps {
		n = n.and(p.then.needs()).and(needsOf(p.after))
	}
	return n
}

func (ps phases) bounds(i int) (begin, end Period) {
	if i+1 < len(ps) {
		end = ps[i+1].after
	}
	return ps[i].after, end
}

// within is e with the point begin as zero.
func within(begin Period, e Elapsed) Elapsed {
	if begin == nil {
		return e
	}
	return begin.with(e, max(begin.Of(e)-begin.Length(), 0))
}
