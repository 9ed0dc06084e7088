package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Option is a setting of one run or a [Callback].
type Option interface{ apply(*settings) }

type setting func(*settings)

func (f setting) apply(s *settings) { f(s) }

// Options combines several options into one. nil options are ignored.
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

// Prepare is an option made by f at each run's start, in the options' order, before the run checks them. nil adds
// nothing. f may change the run's state ([Beginning.State]). Its error ends the run before anything starts. In a [Job],
// all processes call f.
//
// A returned Continue replaces one among the options. A returned [io.Closer] is closed after the callbacks, also if
// the run was refused. [Loop.Plan] and the check of an [Evaluation] ignore a Prepare.
func Prepare(name string, f func(ctx context.Context, from Beginning) (Option, error)) Option {
	return preparation{name, f}
}

type preparation struct {
	name string
	f    func(context.Context, Beginning) (Option, error)
}

func (p preparation) apply(s *settings) {
	n := len(s.prepares)
	s.prepares = append(s.prepares, p)
	switch {
	case p.f == nil:
		s.errs = append(s.errs, fmt.Errorf("%s: %w", p.name, errNoFunction))
	case s.making:
		s.errs = append(s.errs, fmt.Errorf("%s: a Prepare cannot return another one", p.name))
	case n < len(s.made) && s.made[n] != nil:
		s.making = true
		s.made[n].apply(s)
		s.making = false
	}
}

func prepared(ctx context.Context, options []Option, job Job, state any) (made []Option, err error) {
	for n := 0; ; n++ {
		s := collected(options, job, made)
		if n >= len(s.prepares) {
			return made, nil
		}
		from, p := s.beginning(), s.prepares[n]
		from.state, from.Prepared = state, slices.Clone(made)
		var option Option
		if p.f != nil {
			err = shield.Run(func() (err error) { option, err = p.f(ctx, from); return err })
		}
		made = append(made, option)
		if err != nil {
			return made, fmt.Errorf("%s: %w", p.name, err)
		}
	}
}

func closeAll(made []Option) (err error) {
	for _, option := range slices.Backward(made) {
		if c, ok := option.(io.Closer); ok {
			err = errors.Join(err, shield.Run(c.Close))
		}
	}
	return err
}

type settings struct {
	until   Period
	keep    Schedule
	rows    int
	from    Elapsed
	resumed *History
	job     Job // nil for a process alone
	single  bool
	plain   bool
	// prepares are the [Prepare] options, made the options of the first of them. making: one of these is applied.
	// given: one of them has set from.
	prepares      []preparation
	made          []Option
	making, given bool
	endedBy       error
	hooks         []hook
	monitored     *Schedule
	errs          []error
}

func newSettings(options []Option, job Job, made ...Option) settings {
	s := collected(options, job, made)
	from := s.beginning()
	count := map[string]int{}
	for i := range s.hooks {
		h := &s.hooks[i]
		h.setSchedule(from)
		count[h.kind()]++
		h.number = count[h.kind()]
	}
	slices.SortStableFunc(s.hooks, func(a, b hook) int { return a.before(&b) })
	return s
}

func collected(options []Option, job Job, made []Option) settings {
	s := settings{keep: EachStep, job: job, made: made}
	Options(options...).apply(&s)
	return s
}

func (s *settings) beginning() Beginning {
	skipped := int64(0)
	if s.plain {
		skipped = s.from.Steps
	}
	return Beginning{From: s.from, Skipped: skipped, History: s.resumed, Until: s.until, MonitorsWhen: s.monitored, Job: s.job}
}

// Until ends the run at a period, counted from the first run's start ([Continue]). Zero means no iteration; a negative
// period is an error.
func Until(p Period) Option {
	return setting(func(s *settings) {
		if p == nil || p.Length() < 0 {
			s.errs = append(s.errs, fmt.Errorf("until: period must be zero or positive, got %v", p))
			return
		}
		s.until = p
	})
}

// Keep selects the iterations whose rows the history keeps, by default all that logged anything. Rows of [AtStart],
// of [AtEnd], and that a monitor follows are always kept.
func Keep(when Schedule) Option { return setting(func(s *settings) { s.keep = when }) }

// MonitorsWhen restricts callbacks that follow an entry, like callbacks.StopEarly, to a schedule. Their patience counts
// its iterations. They do not divide blocks of steps.
func MonitorsWhen(when Schedule) Option {
	return setting(func(s *settings) {
		if when.err != nil {
			s.errs = append(s.errs, fmt.Errorf("monitors: %s: %w", when, when.err))
		}
		s.monitored = &when
	})
}

// Continue continues an earlier run: it counts from the earlier [Result]'s elapsed ([Elapsed.Check]), adds rows to
// history, which may be nil, and begins the data after the earlier batches.
//
// With the [Result].Stop of an earlier run as stop, which must wrap [ErrStop], the new run makes no iteration and
// returns the same Stop. callbacks.StopEarly needs none: the history shows it.
func Continue(elapsed Elapsed, history *History, stop ...error) Option {
	err := elapsed.Check()
	var endedBy error
	for _, by := range stop {
		if by == nil || !isStop(by) {
			err = errors.Join(err, fmt.Errorf("the earlier run was stopped by %v, expected an error that wraps ErrStop", by))
		}
		endedBy = by
	}
	return setting(func(s *settings) {
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("continue: %w", err))
			return
		}
		if s.making || !s.given {
			s.from, s.resumed, s.endedBy, s.given = elapsed, history, endedBy, s.making
		}
	})
}

func (s settings) checkOver(noData bool) error {
	errs := s.errs
	if noData {
		errs = append(errs, errNoData)
	}
	if len(s.hooks) > 0 || s.keep.name != EachStep.name || s.rows > 0 || s.resumed != nil || s.endedBy != nil || len(s.prepares) > 0 || s.monitored != nil || s.single {
		errs = append(errs, errors.New("over: expected only Until and Continue without a history; call callbacks yourself, with Pass.Report"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("loop: %w", errors.Join(errs...))
}
