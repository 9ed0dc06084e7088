package loop

import (
	"errors"
	"fmt"
)

// Option is a setting of one run, or somebody who watches it.
type Option func(*settings)

type settings struct {
	until   Period
	keep    Schedule
	bounds  bounds // of the history
	from    Elapsed
	resumed *History
	// endedBy is what had stopped the earlier run, whose Until was endedUntil.
	endedBy    error
	endedUntil string
	watchers   []watching
	// late are options that need to know the others.
	late []Option
	// restores names the option that gives an earlier state back, "" if none does.
	restores string
	// monitored is when monitors look, nil for wherever their entry was logged.
	monitored *Schedule
	// sizes is how to count the examples of a batch: a func(B) int, nil for the batch's own.
	sizes    any
	watchdog *watchdog
	errs     []error
}

func newSettings(options []Option) settings {
	s := settings{keep: EachStep}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	for _, o := range s.late {
		o(&s)
	}
	return s
}

// Until ends the run when the period is reached. A run with a period of zero makes no turn.
func Until(p Period) Option {
	return func(s *settings) {
		if p == nil || p.length() < 0 {
			s.errs = append(s.errs, fmt.Errorf("until: period must be zero or positive, got %v", p))
			return
		}
		s.until = p
	}
}

// Keep sets which turns go to the history; without it all do that logged anything.
func Keep(when Schedule) Option { return func(s *settings) { s.keep = when } }

// MonitorsWhen has [StopEarly], [KeepBest], [OnBest] and [ReduceOnPlateau] look at their entry in the turns in which a schedule is due
// alone, also where it is logged in each step; so [Evaluations] counts these turns. With Every(Steps(n)), n the steps of an epoch,
// they count epochs. Such a monitor does not break blocks of steps up.
func MonitorsWhen(when Schedule) Option {
	return func(s *settings) {
		if when.err != nil {
			s.errs = append(s.errs, fmt.Errorf("monitors: %s: %w", when, when.err))
		}
		s.monitored = &when
		s.late = append(s.late, func(s *settings) {
			for i := range s.watchers {
				if w := &s.watchers[i]; w.monitor {
					w.when, w.seldom = when.AndAtStart().AndAtEnd(), true
				}
			}
		})
	}
}

// From continues an earlier run: counting goes on at elapsed, as [Result].Elapsed has it, and rows are added to history,
// which may be nil. The data must be at that place already.
//
// Ciclo returns the elapsed of before the last batch, so that a resumed run repeats a step number; here the two meet.
// Time counts active time: the pause between the runs is not in it.
func From(elapsed Elapsed, history *History) Option {
	return func(s *settings) {
		if elapsed.Steps < 0 || elapsed.Samples < 0 || elapsed.Time < 0 {
			s.errs = append(s.errs, fmt.Errorf("from: elapsed must not be negative, got %+v", elapsed))
			return
		}
		s.from, s.resumed = elapsed, history
	}
}

// Ended goes with [From] where the earlier run was stopped: this one then makes no turn, its [Reason] is [Stopped], and its
// [Result].Stop is by, which must wrap [ErrStop]. A run with another [Until] than the earlier one had (its String, "" without
// one) was asked for something else, and goes on. What [StopEarly] stopped needs no Ended: the history tells it.
func Ended(by error, until string) Option {
	return func(s *settings) {
		if by == nil || !isStop(by) {
			s.errs = append(s.errs, fmt.Errorf("ended: by %v, expected an error that wraps ErrStop", by))
			return
		}
		s.endedBy, s.endedUntil = by, until
	}
}

// SamplesBy counts the examples of a batch by a function, in place of [Sized].
func SamplesBy[B any](size func(batch B) int) Option {
	return func(s *settings) {
		if size == nil {
			s.errs = append(s.errs, fmt.Errorf("samples by: %w", errNoFunction))
			return
		}
		s.sizes = size
	}
}

// checkOver finds options that a loop written by hand cannot heed: passing over them in silence would be worse.
func (s settings) checkOver(noData bool) error {
	errs := s.errs
	if noData {
		errs = append(errs, errors.New("no data given"))
	}
	if len(s.watchers) > 0 || s.keep.name != EachStep.name || s.bounds.rows > 0 || s.resumed != nil || s.endedBy != nil || s.watchdog != nil {
		errs = append(errs, errors.New("over: takes Until and From without a history; call watchers by hand, with Pass.Report"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("loop: %w", errors.Join(errs...))
}
