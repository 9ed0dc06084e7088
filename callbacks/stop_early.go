package callbacks

import (
	"context"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

// Patience is the time to wait for a better value: [Evaluations], or [loop.Steps], [loop.Samples] or [loop.Time] since
// the best one.
type Patience interface{ fmt.Stringer }

// Evaluations is a patience in consecutive values that are not better.
type Evaluations int

func (p Evaluations) String() string {
	if p == 1 {
		return "1 evaluation"
	}
	return fmt.Sprintf("%d evaluations", int(p))
}

func measure(p Patience, passed loop.Elapsed, values int64) (part, length int64, ok bool) {
	switch p := p.(type) {
	case Evaluations:
		return values, int64(p), true
	case loop.Steps:
		return passed.Steps, int64(p), true
	case loop.Samples:
		return passed.Samples, int64(p), true
	case loop.Time:
		return int64(passed.Time), int64(p), true
	}
	return 0, 0, false
}

func checkPatience(p Patience) error {
	_, length, ok := measure(p, loop.Elapsed{}, 0)
	switch {
	case p == nil:
		return fmt.Errorf("no patience given; use Steps, Samples, Time or Evaluations")
	case !ok:
		return fmt.Errorf("patience must be Steps, Samples, Time or Evaluations, got %T", p)
	case length <= 0:
		return fmt.Errorf("patience must be positive, got %s: with none, the first value would be the last, also a better one", p)
	}
	return nil
}

// StopEarly ends the run when an entry had no better value for the patience: StopEarly("mse_test", Evaluations(3))
// stops at the third evaluation in a row that was not better. The patience must be positive. NaN and infinities are
// never better. [loop.Result].Stop has an [*EarlyStopError].
//
// A resumed run that the rule had stopped makes no step, even with a later [loop.Until]. It continues with more
// patience or without the rule.
func StopEarly(entry string, patience Patience, settings ...Monitor) loop.Callback {
	settings = slices.Clone(settings)
	return watchValue("stop early", entry, func() (*stopEarly, error) {
		if err := checkPatience(patience); err != nil {
			return nil, err
		}
		m, err := newMonitor(entry, settings)
		return &stopEarly{monitor: m, patience: patience}, err
	})
}

type stopEarly struct {
	noEnd
	monitor
	patience Patience
}

func (s *stopEarly) Watch(_ context.Context, r loop.Report) error {
	v, err := s.read(r)
	if err != nil {
		return err
	}
	return s.ask(r.Elapsed, v)
}

func (s *stopEarly) ask(at loop.Elapsed, v float64) error {
	if s.see(at, v) || !s.patienceOver(s.patience, at) {
		return nil
	}
	return &EarlyStopError{Entry: s.entry, Mode: s.Mode, Best: s.best, At: s.bestAt, Patience: s.patience, MinDelta: s.MinDelta}
}

func (s *stopEarly) resume(from loop.Beginning) (stop error) {
	s.replay(from, func(at loop.Elapsed, v float64) { stop = s.ask(at, v) })
	return stop
}

// EarlyStopError is the reason with which [StopEarly] stops a run.
type EarlyStopError struct {
	Entry string
	Mode  loop.Mode
	// Best is the best value, At its time. If none was better than the baseline, it is that, at step 0; without one
	// +Inf, or -Inf for Highest.
	Best     float64
	At       loop.Elapsed
	Patience Patience
	MinDelta float64
}

func (e *EarlyStopError) Error() string {
	side := "below"
	if e.Mode == loop.Highest {
		side = "above"
	}
	if e.MinDelta > 0 {
		side = fmt.Sprintf("more than %g %s", e.MinDelta, side)
	}
	switch {
	case e.Best == better.Worst(e.Mode):
		return fmt.Sprintf("no finite value of %s for %s: %v", e.Entry, e.Patience, loop.ErrStop)
	case e.At == loop.Elapsed{}:
		return fmt.Sprintf("no value of %s %s the baseline %g for %s: %v", e.Entry, side, e.Best, e.Patience, loop.ErrStop)
	}
	return fmt.Sprintf("no value of %s %s %g (of step %d) for %s: %v", e.Entry, side, e.Best, e.At.Steps, e.Patience, loop.ErrStop)
}

func (e *EarlyStopError) Unwrap() error { return loop.ErrStop }
