package loop

import (
	"context"
	"fmt"
	"slices"
)

// Patience is how long to wait for a better value: [Steps], [Samples] or [Time] since the best one, or [Evaluations].
type Patience interface {
	fmt.Stringer
	// measure gives the part of what passed that this patience is measured in.
	measure(passed Elapsed, values int64) int64
	// length is the patience in its own unit.
	length() int64
}

// Evaluations is a patience counted in values: so many in a row that were not better.
type Evaluations int

func (p Evaluations) String() string { return count(int64(p), "evaluation") }
func (p Evaluations) length() int64  { return int64(p) }

func (p Evaluations) measure(_ Elapsed, values int64) int64 { return values }
func (p Steps) measure(passed Elapsed, _ int64) int64       { return p.of(passed) }
func (p Samples) measure(passed Elapsed, _ int64) int64     { return p.of(passed) }
func (p Time) measure(passed Elapsed, _ int64) int64        { return p.of(passed) }

func checkPatience(p Patience) error {
	switch {
	case p == nil:
		return fmt.Errorf("no patience given; say Steps, Samples, Time or Evaluations")
	case p.length() <= 0:
		return fmt.Errorf("patience must be positive, got %s: with none, the first value would be the last, also a better one", p)
	}
	return nil
}

// StopEarly ends the run when an entry had no better value for longer than the patience: StopEarly("mse_test", Lowest,
// Evaluations(3)) stops at the third evaluation in a row that did not beat the best. It looks in the turns in which the
// entry was logged. Patience is measured from the best value, or from the first one as long as none was better; a NaN
// or an infinity is never better (see [NonFinite] to do more about it). The reason is then [Stopped], and [Result].Stop
// has an [*EarlyStopError]; [History.Best] finds the best value after any end. To have the best state back, add
// [KeepBest]. A run that is resumed with its history ([From]) waits on where the earlier one ended; if that one had been
// stopped by this rule, it makes no turn and ends for the same reason. With more patience, or without the rule, it goes on; a later
// [Until] alone changes nothing.
//
// Ciclo counts a patience in time from the start of the loop; we count it from the best value. Keras and Jaxloop take a
// patience of 0, which stops a run that just got better; here it is an error.
func StopEarly(entry string, mode Mode, patience Patience, options ...MonitorOption) Option {
	options = slices.Clone(options)
	return watchValue("stop early", entry, func() (*stopEarly, error) { return newStopEarly(entry, mode, patience, options) })
}

// NewStopEarly is [StopEarly] for a loop by hand: call its Watch in each pass that logged the entry, and leave the loop
// when it returns an error that wraps [ErrStop].
func NewStopEarly(entry string, mode Mode, patience Patience, options ...MonitorOption) (Attendant, error) {
	s, err := newStopEarly(entry, mode, patience, options)
	if err != nil {
		return nil, fmt.Errorf("loop: stop early: %w", err)
	}
	return s, nil
}

type stopEarly struct {
	noEnd
	monitor
	patience Patience
	before   error // the wish to stop at the last value of the earlier run
}

func newStopEarly(entry string, mode Mode, patience Patience, options []MonitorOption) (*stopEarly, error) {
	if err := checkPatience(patience); err != nil {
		return nil, err
	}
	m, err := newMonitor(entry, mode, options)
	if err == nil {
		err = m.plateau.meaningless()
	}
	if err != nil {
		return nil, err
	}
	return &stopEarly{monitor: m, patience: patience}, nil
}

func (s *stopEarly) Watch(_ context.Context, r Report) error {
	v, err := s.read(r)
	if err != nil {
		return err
	}
	return s.ask(r.Elapsed, v)
}

// ask takes the next value, and gives the wish to stop if it was one too many.
func (s *stopEarly) ask(at Elapsed, v float64) error {
	if s.see(at, v) || !s.spent(s.patience, at) {
		return nil
	}
	return &EarlyStopError{Entry: s.entry, Mode: s.mode, Best: s.best, Patience: s.patience, MinDelta: s.minDelta}
}

func (s *stopEarly) resume(from Elapsed, h *History, when *Schedule) {
	s.replay(from, h, when, func(at Elapsed, v float64) { s.before = s.ask(at, v) })
}

// over tells whether the run had ended with the last of the earlier values.
func (s *stopEarly) over() error { return s.before }

// EarlyStopError is what [StopEarly] asks to stop with; it wraps [ErrStop].
type EarlyStopError struct {
	Entry string
	Mode  Mode
	// Best is the best value and where it was. If no value was better than the [Baseline], it is that at no steps, and
	// without a baseline +Inf or, for Highest, -Inf.
	Best     Best
	Patience Patience
	MinDelta float64
}

func (e *EarlyStopError) Error() string {
	side := "below"
	if e.Mode == Highest {
		side = "above"
	}
	if e.MinDelta > 0 {
		side = fmt.Sprintf("more than %g %s", e.MinDelta, side)
	}
	switch {
	case e.Best.Value == e.Mode.worst():
		return fmt.Sprintf("no finite value of %s for %s: %v", e.Entry, e.Patience, ErrStop)
	case e.Best.Elapsed == Elapsed{}:
		return fmt.Sprintf("no value of %s %s the baseline %g for %s: %v", e.Entry, side, e.Best.Value, e.Patience, ErrStop)
	}
	return fmt.Sprintf("no value of %s %s %g (of step %d) for %s: %v", e.Entry, side, e.Best.Value, e.Best.Elapsed.Steps, e.Patience, ErrStop)
}

// Unwrap gives [ErrStop].
func (e *EarlyStopError) Unwrap() error { return ErrStop }
