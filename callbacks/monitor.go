package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/loop"
)

// MonitorOption is a setting of what looks for better values: [StopEarly], [KeepBest], [OnBest], [ReduceOnPlateau].
type MonitorOption func(*monitor)

// MinDelta makes a value better only if it beats the best one by more than delta; 0 is the default: any strictly better
// value. Ciclo takes this setting and never looks at it; ours works.
func MinDelta(delta float64) MonitorOption {
	return func(m *monitor) {
		if !(delta >= 0) || math.IsInf(delta, 0) {
			m.errs = append(m.errs, fmt.Errorf("min delta must be zero or positive and finite, got %g", delta))
		}
		m.minDelta = delta
	}
}

// Baseline is a value to beat from the first one on: one that does not is no better value, and the patience runs. It is
// so in Ciclo; Jaxloop's documentation says that patience starts when the baseline is reached, but its code does as we
// do.
func Baseline(value float64) MonitorOption {
	return func(m *monitor) {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			m.errs = append(m.errs, fmt.Errorf("baseline must be finite, got %g", value))
		}
		m.baseline = &value
	}
}

// StartAt passes over the values from before the run has reached a period, counted from its beginning: none of them is the best
// one, and no patience runs. In those turns a [StopEarly] does not stop, and a [KeepBest] keeps nothing.
//
// It is Keras's start_from_epoch. Lightning's min_steps goes on counting meanwhile and stops right behind them; ours waits the whole
// patience from there, because a best value of the first steps is mostly an accident.
func StartAt(p loop.Period) MonitorOption {
	return func(m *monitor) {
		if p == nil || p.Length() < 0 {
			m.errs = append(m.errs, fmt.Errorf("start at: period must be zero or positive, got %v", p))
		}
		m.start = p
	}
}

// monitor follows the values of one entry. It is a function of them alone, so a resumed run makes it again of the
// history.
type monitor struct {
	entry    string
	mode     loop.Mode // Lowest or Highest
	minDelta float64
	baseline *float64
	start    loop.Period // nil if all values count
	best     loop.Best
	found    bool // a value was better: best is one
	// Waiting is measured from here: the best value, or without one the first.
	since  loop.Elapsed
	waited int64 // values since then that were no better
	begun  bool
	// plateau has the settings that mean something to a plateau only.
	plateau plateauSettings
	errs    []error
	// resumeErr is why an earlier run's values could not be read; the first Watch returns it.
	resumeErr error
}

func newMonitor(entry string, mode loop.Mode, options []MonitorOption) (monitor, error) {
	m := monitor{entry: entry}
	var err error
	if m.mode, err = mode.Of(entry); err != nil {
		m.errs = append(m.errs, err)
	}
	if entry == "" {
		m.errs = append(m.errs, fmt.Errorf("%w: no entry to watch", loop.ErrName))
	}
	for _, o := range options {
		if o != nil {
			o(&m)
		}
	}
	m.best.Value = m.mode.Worst()
	if m.baseline != nil {
		m.best.Value = *m.baseline
	}
	return m, errors.Join(m.errs...)
}

// see takes the next value and tells whether it is better.
func (m *monitor) see(at loop.Elapsed, v float64) bool {
	if m.start != nil && !at.Reached(m.start) {
		return false
	}
	if !m.begun {
		m.begun, m.since = true, at
	}
	if !m.mode.Better(v, m.best.Value, m.minDelta) {
		m.waited++
		return false
	}
	m.best, m.found = loop.Best{Value: v, Elapsed: at}, true
	m.wait(at)
	return true
}

// wait begins to wait anew.
func (m *monitor) wait(from loop.Elapsed) { m.since, m.waited = from, 0 }

// spent tells whether the patience is over.
func (m *monitor) spent(p Patience, now loop.Elapsed) bool {
	waited, patience, _ := measure(p, now.Since(m.since), m.waited)
	return m.begun && waited >= patience
}

// read is the value of the turn.
func (m *monitor) read(r loop.Report) (float64, error) {
	if m.resumeErr != nil {
		return 0, m.resumeErr
	}
	return r.Logs.Float(m.entry)
}

// replay shows the values of an earlier run, as far as this one goes on from them.
func (m *monitor) replay(from loop.Beginning, see func(loop.Elapsed, float64)) {
	if from.History == nil {
		return
	}
	at, values, err := from.History.Series(m.entry)
	if err != nil && !errors.Is(err, loop.ErrNoEntry) {
		m.resumeErr = fmt.Errorf("earlier values: %w", err)
	}
	var last loop.Elapsed
	for i, v := range values {
		due := from.MonitorsWhen == nil || from.MonitorsWhen.Due(last, at[i])
		last = at[i]
		if due && at[i].Steps <= from.From.Steps {
			see(at[i], v)
		}
	}
}

// watchEntry is a callback for an entry. It is made once beforehand to see whether it can be.
func watchEntry[A loop.Attendant](name, entry string, start func() (A, error)) loop.Callback {
	_, err := start()
	return loop.Callback{Name: name, Entry: entry, Err: err, Start: func(loop.Beginning) (loop.Attendant, error) {
		a, err := start()
		if err != nil {
			return nil, &refusal{name, err}
		}
		return a, nil
	}}
}

// refusal is why a callback cannot be started. A run has its name already, a loop written by hand has not.
type refusal struct {
	name string
	err  error
}

func (r *refusal) Error() string { return "callbacks: " + r.name + ": " + r.err.Error() }
func (r *refusal) Point() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refused is a callback that a run refuses, and that a loop written by hand cannot start either.
func refused(c loop.Callback, err error) loop.Callback {
	c.Err = errors.Join(c.Err, err)
	c.Start = func(loop.Beginning) (loop.Attendant, error) { return nil, &refusal{cmp.Or(c.Name, c.String()), c.Err} }
	return c
}

// resumer goes on where the one of an earlier run ended. An error that wraps [loop.ErrStop] says that the run had ended there.
type resumer interface {
	resume(from loop.Beginning) error
}

// watchValue is [watchEntry] for what follows the values.
func watchValue[A interface {
	loop.Attendant
	resumer
}](name, entry string, start func() (A, error)) loop.Callback {
	c := watchEntry(name, entry, start)
	c.Monitor = true
	make := c.Start
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		a, err := make(from)
		if err != nil {
			return nil, err
		}
		return a, a.(A).resume(from)
	}
	return c
}

// changeByValue is [watchValue] for what changes the state.
func changeByValue[C interface {
	loop.Changer
	resumer
}](name, entry string, start func() (C, error)) loop.Change {
	_, err := start()
	return loop.Change{Name: name, Entry: entry, Monitor: true, Err: err, Start: func(from loop.Beginning) (loop.Changer, error) {
		c, err := start()
		if err == nil {
			err = c.resume(from)
		}
		if err != nil {
			return nil, &refusal{name, err}
		}
		return c, nil
	}}
}

// noEnd is for callbacks that need not know the end.
type noEnd struct{}

// End does nothing.
func (noEnd) End(context.Context, loop.Ending) error { return nil }

// nothingAtEnd is noEnd for changes.
type nothingAtEnd struct{}

// End does nothing.
func (nothingAtEnd) End(context.Context, loop.Ending, loop.State) error { return nil }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
