package loop

import (
	"errors"
	"fmt"
	"slices"
)

// Option is a setting of one run, or what runs beside it: a [Callback], a [Change].
type Option interface{ apply(*settings) }

// setting is an [Option] that is no callback.
type setting func(*settings)

func (f setting) apply(s *settings) { f(s) }

// Options is several options as one.
func Options(options ...Option) Option {
	options = slices.Clone(options)
	return setting(func(s *settings) {
		for _, o := range options {
			if o != nil {
				o.apply(s)
			}
		}
	})
}

// EachRun is an option that is made anew for each run, so that several callbacks can share what belongs to one run.
func EachRun(option func() Option) Option {
	return setting(func(s *settings) { Options(option()).apply(s) })
}

type settings struct {
	until   Period
	keep    Schedule
	bounds  bounds // of the history
	from    Elapsed
	resumed *History
	// endedBy is what had stopped the earlier run, whose Until was endedUntil.
	endedBy    error
	endedUntil string
	beside     []beside
	// monitored is when monitors look, nil for wherever their entry was logged.
	monitored *Schedule
	// sizes is how to count the examples of a batch: a func(B) int, nil for the batch's own.
	sizes any
	errs  []error
}

func newSettings(options []Option) settings {
	s := settings{keep: EachStep}
	Options(options...).apply(&s)
	for i := range s.beside {
		s.beside[i].schedule(s.beginning())
	}
	// A list of this run alone, which keeps the order of equals.
	slices.SortStableFunc(s.beside, func(a, b beside) int { return a.rank() - b.rank() })
	return s
}

func (s *settings) beginning() Beginning {
	return Beginning{From: s.from, History: s.resumed, Until: s.until, MonitorsWhen: s.monitored}
}

// Until ends the run when the period is reached. A run with a period of zero makes no turn.
func Until(p Period) Option {
	return setting(func(s *settings) {
		if p == nil || p.Length() < 0 {
			s.errs = append(s.errs, fmt.Errorf("until: period must be zero or positive, got %v", p))
			return
		}
		s.until = p
	})
}

// Keep sets which turns go to the history; without it all do that logged anything.
func Keep(when Schedule) Option { return setting(func(s *settings) { s.keep = when }) }

// MonitorsWhen has callbacks that follow the values of an entry, as callbacks.StopEarly, look at it in the turns in which a
// schedule is due alone, also where it is logged in each step: a patience in evaluations counts these turns then. With
// Every(Steps(n)), n the steps of an epoch, they count epochs. Such a callback does not break blocks of steps up.
func MonitorsWhen(when Schedule) Option {
	return setting(func(s *settings) {
		if when.err != nil {
			s.errs = append(s.errs, fmt.Errorf("monitors: %s: %w", when, when.err))
		}
		s.monitored = &when
	})
}

// From continues an earlier run: counting goes on at elapsed, as [Result].Elapsed has it, and rows are added to history,
// which may be nil. The data must be at that place already.
//
// Ciclo returns the elapsed of before the last batch, so that a resumed run repeats a step number; here the two meet.
// Time counts active time: the pause between the runs is not in it.
func From(elapsed Elapsed, history *History) Option {
	return setting(func(s *settings) {
		if err := elapsed.Check(); err != nil {
			s.errs = append(s.errs, fmt.Errorf("from: %w", err))
			return
		}
		s.from, s.resumed = elapsed, history
	})
}

// Ended goes with [From] where the earlier run was stopped: this one then makes no turn, its [Reason] is [Stopped], and its
// [Result].Stop is by, which must wrap [ErrStop]. A run with another [Until] than the earlier one had (its String, "" without
// one) was asked for something else, and goes on. What callbacks.StopEarly stopped needs no Ended: the history says it.
func Ended(by error, until string) Option {
	return setting(func(s *settings) {
		if by == nil || !isStop(by) {
			s.errs = append(s.errs, fmt.Errorf("ended: by %v, expected an error that wraps ErrStop", by))
			return
		}
		s.endedBy, s.endedUntil = by, until
	})
}

// SamplesBy counts the examples of a batch by a function, in place of [Sized].
func SamplesBy[B any](size func(batch B) int) Option {
	return setting(func(s *settings) {
		if size == nil {
			s.errs = append(s.errs, fmt.Errorf("samples by: %w", ErrNoFunction))
			return
		}
		s.sizes = size
	})
}

// checkOver finds options that mean nothing in a loop written by hand: passing over them in silence would be worse.
func (s settings) checkOver(noData bool) error {
	errs := s.errs
	if noData {
		errs = append(errs, errors.New("no data given"))
	}
	if len(s.beside) > 0 || s.keep.name != EachStep.name || s.bounds.rows > 0 || s.resumed != nil || s.endedBy != nil || s.monitored != nil {
		errs = append(errs, errors.New("over: takes Until and From without a history; call callbacks by hand, with Pass.Report"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("loop: %w", errors.Join(errs...))
}
