package loop

import (
	"context"
	"errors"
	"fmt"
)

// Option is a setting of one run, or somebody who watches it.
type Option func(*settings)

type settings struct {
	until    Period
	keep     Schedule
	bounds   bounds // of the history
	from     Elapsed
	resumed  *History
	watchers []watching
	errs     []error
}

func newSettings(options []Option) settings {
	s := settings{keep: EachStep}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
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

// checkOver finds options that a loop written by hand cannot heed: passing over them in silence would be worse.
func (s settings) checkOver(noData bool) error {
	errs := s.errs
	if noData {
		errs = append(errs, errors.New("no data given"))
	}
	if len(s.watchers) > 0 || s.keep.name != EachStep.name || s.bounds.rows > 0 || s.resumed != nil {
		errs = append(errs, errors.New("over: takes Until and From without a history; call watchers by hand, with Pass.Report"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("loop: %w", errors.Join(errs...))
}

// Report is what a watcher sees, after the tasks of a turn.
type Report struct {
	Elapsed Elapsed
	// Logs is what was logged in this turn.
	Logs    Logs
	History *History
	// From is where this run began: zero, or what the option [From] says.
	From Elapsed
	// Until is the end of the run, nil if none was set.
	Until Period
}

// Ending is what a watcher sees when the run is over.
type Ending struct {
	Report
	Reason Reason
	// Err is the error of the run, nil if it went well.
	Err error
}

// Watcher looks at a run and changes nothing. Returning [ErrStop] ends the run after the turn.
type Watcher func(ctx context.Context, report Report) error

// Watch runs a watcher on a schedule, after the tasks of the turn.
func Watch(when Schedule, watcher Watcher) Option {
	if watcher == nil {
		return Attend("", when, nil)
	}
	return Attend("", when, func() Attendant { return attendFunc(watcher) })
}

// Attendant is a watcher that also wants to know when a run is over. Its End is always called, whatever happened,
// the last attendant's first.
type Attendant interface {
	Watch(ctx context.Context, report Report) error
	End(ctx context.Context, ending Ending) error
}

// Attend has an attendant made when a run starts, so that one option serves any number of runs.
func Attend(name string, when Schedule, start func() Attendant) Option {
	w := watching{name: name, when: when, start: start}
	if start == nil {
		w.err = errNoFunction
	}
	return func(s *settings) { s.watchers = append(s.watchers, w) }
}

type watching struct {
	name  string
	when  Schedule
	start func() Attendant
	err   error
	it    Attendant // made when the run starts
}

type attendFunc Watcher

func (f attendFunc) Watch(ctx context.Context, r Report) error { return f(ctx, r) }
func (f attendFunc) End(context.Context, Ending) error         { return nil }
