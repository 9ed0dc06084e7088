package loop

import (
	"errors"
	"fmt"
	"slices"
)

// Option is a setting of one run, a [Callback] or a [Change].
type Option interface{ apply(*settings) }

// setting is an [Option] that is neither a callback nor a change.
type setting func(*settings)

func (f setting) apply(s *settings) { f(s) }

// Options makes one option of several. Nil ones are left out.
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
// [Loop.Plan] and the check of an [Evaluation] make one too, which is not run: what has an effect belongs into a Start.
func EachRun(option func() Option) Option {
	return setting(func(s *settings) {
		err := ErrNoFunction
		var made Option
		if option != nil {
			err = Shield(func() error { made = option(); return nil })
		}
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("each run: %w", err))
		}
		Options(made).apply(s)
	})
}

type settings struct {
	until   Period
	keep    Schedule
	bounds  bounds // of the history
	from    Elapsed
	resumed *History
	job     Job  // nil where this process is alone
	single  bool // no step waits for another batch
	// endedBy is what stopped the earlier run, whose Until was endedUntil.
	endedBy    error
	endedUntil string
	hooks      []hook
	// monitored is when monitors are called, nil for wherever their entry is logged.
	monitored *Schedule
	// sizes counts the examples of a batch: a func(B) int, nil for the batch's own method.
	sizes any
	errs  []error
}

// newSettings are those of a run, of a job or nil.
func newSettings(options []Option, job Job) settings {
	s := settings{keep: EachStep, job: job}
	Options(options...).apply(&s)
	from := s.beginning()
	count := map[string]int{}
	for i := range s.hooks {
		h := &s.hooks[i]
		h.setSchedule(from)
		count[h.kind]++
		h.number = count[h.kind]
	}
	// The list belongs to this run alone. Equal ones keep their order.
	slices.SortStableFunc(s.hooks, func(a, b hook) int { return a.order() - b.order() })
	return s
}

func (s *settings) beginning() Beginning {
	return Beginning{From: s.from, History: s.resumed, Until: s.until, MonitorsWhen: s.monitored, Job: s.job}
}

// Until ends the run when the period is reached, counted from the start of the first of the runs that continue each
// other (see [Continue]). With a period of zero the run makes no turn. A negative period is an error.
func Until(p Period) Option {
	return setting(func(s *settings) {
		if p == nil || p.Length() < 0 {
			s.errs = append(s.errs, fmt.Errorf("until: period must be zero or positive, got %v", p))
			return
		}
		s.until = p
	})
}

// Keep sets which turns are added to the history; without it all are that logged anything.
func Keep(when Schedule) Option { return setting(func(s *settings) { s.keep = when }) }

// MonitorsWhen restricts callbacks that follow the values of an entry, such as callbacks.StopEarly, to the turns in
// which a schedule is due, even if the entry is logged in each step. A patience in evaluations then counts these turns:
// epochs with Every(Steps(n)), n the steps of an epoch. Such a callback does not split blocks of steps.
func MonitorsWhen(when Schedule) Option {
	return setting(func(s *settings) {
		if when.err != nil {
			s.errs = append(s.errs, fmt.Errorf("monitors: %s: %w", when, when.err))
		}
		s.monitored = &when
	})
}

// Continue continues an earlier run: counting goes on at elapsed, as in its [Result], and rows are added to history,
// which may be nil. The run begins its data after the batches of the earlier one ([Source]). Time is active time,
// without the pause between the runs. An elapsed that [Elapsed.Check] refuses is an error.
func Continue(elapsed Elapsed, history *History) Option {
	return setting(func(s *settings) {
		if err := elapsed.Check(); err != nil {
			s.errs = append(s.errs, fmt.Errorf("continue: %w", err))
			return
		}
		s.from, s.resumed = elapsed, history
	})
}

// Ended is used with [Continue] if the earlier run was stopped: this run then makes no turn, its [Reason] is [Stopped], and
// its [Result].Stop is by, which must wrap [ErrStop]. until is the String of the earlier run's [Until], "" if it had
// none; with another Until this run goes on. A run that callbacks.StopEarly stopped needs no Ended, because its history
// shows it.
func Ended(by error, until string) Option {
	return setting(func(s *settings) {
		if by == nil || !isStop(by) {
			s.errs = append(s.errs, fmt.Errorf("ended: by %v, expected an error that wraps ErrStop", by))
			return
		}
		s.endedBy, s.endedUntil = by, until
	})
}

// SamplesBy counts the examples of a batch by a function, in place of [Sized]. B must be the type of the run's batches.
func SamplesBy[B any](size func(batch B) int) Option {
	return setting(func(s *settings) {
		if size == nil {
			s.errs = append(s.errs, fmt.Errorf("samples by: %w", ErrNoFunction))
			return
		}
		s.sizes = size
	})
}

// checkOver refuses options that mean nothing in a loop written by hand.
func (s settings) checkOver(noData bool) error {
	errs := s.errs
	if noData {
		errs = append(errs, errNoData)
	}
	if len(s.hooks) > 0 || s.keep.name != EachStep.name || s.bounds.rows > 0 || s.resumed != nil || s.endedBy != nil || s.monitored != nil || s.single {
		errs = append(errs, errors.New("over: takes Until and Continue without a history; call callbacks by hand, with Pass.Report"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("loop: %w", errors.Join(errs...))
}
