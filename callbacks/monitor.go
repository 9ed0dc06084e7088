package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/loop"
)

// MonitorOption is a setting of what follows an entry: [StopEarly], [KeepBest], [OnBest], [ReduceOnPlateau].
type MonitorOption func(*monitor)

// MinDelta counts a value as better only if it is better than the best one by more than delta, which must be 0 or more
// and finite. The default is 0: any strictly better value.
func MinDelta(delta float64) MonitorOption {
	return func(m *monitor) {
		if !(delta >= 0) || math.IsInf(delta, 0) {
			m.errs = append(m.errs, fmt.Errorf("min delta must be zero or positive and finite, got %g", delta))
		}
		m.minDelta = delta
	}
}

// Baseline is the best value at the start: a first value that is not better than it is no better value, and the
// patience runs. It must be finite.
func Baseline(value float64) MonitorOption {
	return func(m *monitor) {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			m.errs = append(m.errs, fmt.Errorf("baseline must be finite, got %g", value))
		}
		m.baseline = &value
	}
}

// DespiteName has a mode count that is the other one than the name of the entry says ([loop.Known]), as for a loss that
// is to grow; without it such a mode is an error.
func DespiteName() MonitorOption { return func(m *monitor) { m.despite = true } }

// StartAt leaves out the values before the run has reached a period, counted from its beginning: none of them is the
// best one, and no patience runs. Up to there a [StopEarly] does not stop, and a [KeepBest] keeps nothing.
func StartAt(p loop.Period) MonitorOption {
	return func(m *monitor) {
		if p == nil || p.Length() < 0 {
			m.errs = append(m.errs, fmt.Errorf("start at: period must be zero or positive, got %v", p))
		}
		m.start = p
	}
}

// monitor follows the values of one entry. It depends on them only, so a resumed run computes it from the history.
type monitor struct {
	entry    string
	mode     loop.Mode // Lowest or Highest
	minDelta float64
	baseline *float64
	despite  bool        // the mode may be against the entry's name
	start    loop.Period // nil if all values count
	best     loop.Best
	found    bool // a value was better: best is one
	// since is where the patience runs from: the best value, or the first one if none was better.
	since  loop.Elapsed
	waited int64 // values since then, none of them better
	begun  bool
	// plateau has the settings of ReduceOnPlateau only.
	plateau plateauSettings
	errs    []error
	// resumeErr is why an earlier run's values could not be read; the first Watch returns it.
	resumeErr error
}

// newMonitor refuses the settings of ReduceOnPlateau.
func newMonitor(entry string, mode loop.Mode, options []MonitorOption) (monitor, error) {
	m, err := newPlateauMonitor(entry, mode, options)
	if err == nil && len(m.plateau.options) > 0 {
		err = fmt.Errorf("%s means something to ReduceOnPlateau only", m.plateau.options[0])
	}
	return m, err
}

func newPlateauMonitor(entry string, mode loop.Mode, options []MonitorOption) (monitor, error) {
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
	if err := m.mode.Against(entry); err != nil && !m.despite {
		m.errs = append(m.errs, fmt.Errorf("%w; if it is meant, give DespiteName()", err))
	}
	m.best.Value = m.mode.Worst()
	if m.baseline != nil {
		m.best.Value = *m.baseline
	}
	return m, errors.Join(m.errs...)
}

// see takes the next value and reports whether it is better.
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

// wait restarts the patience.
func (m *monitor) wait(from loop.Elapsed) { m.since, m.waited = from, 0 }

// patienceOver reports whether the patience is over.
func (m *monitor) patienceOver(p Patience, now loop.Elapsed) bool {
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

// replay calls see with the values of the earlier run up to where this one begins.
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

// watchEntry is a callback for an entry. start is called once beforehand, for its error.
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

// refusal is why a callback cannot be started, with the callback's name. A run uses its Point, as it adds the name
// itself.
type refusal struct {
	name string
	err  error
}

func (r *refusal) Error() string { return "callbacks: " + r.name + ": " + r.err.Error() }
func (r *refusal) Point() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refused is a callback whose error a run returns, and Start in a loop written by hand.
func refused(c loop.Callback, err error) loop.Callback {
	c.Err = errors.Join(c.Err, err)
	c.Start = func(loop.Beginning) (loop.Attendant, error) { return nil, &refusal{cmp.Or(c.Name, c.String()), c.Err} }
	return c
}

// resumer continues from the history of an earlier run. An error that wraps [loop.ErrStop] says that the earlier run
// was over.
type resumer interface {
	resume(from loop.Beginning) error
}

// watchValue is watchEntry for what follows the values of the entry.
func watchValue[A interface {
	loop.Attendant
	resumer
}](name, entry string, start func() (A, error)) loop.Callback {
	c := watchEntry(name, entry, start)
	c.Monitor = true
	startNew := c.Start
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		a, err := startNew(from)
		if err != nil {
			return nil, err
		}
		return a, a.(A).resume(from)
	}
	return c
}

// changeByValue is watchValue for what changes the state.
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

// noEnd is embedded in callbacks that do nothing at the end.
type noEnd struct{}

// End does nothing.
func (noEnd) End(context.Context, loop.Ending) error { return nil }

// nothingAtEnd is embedded in changes that do nothing at the end.
type nothingAtEnd struct{}

// End does nothing.
func (nothingAtEnd) End(context.Context, loop.Ending, loop.State) error { return nil }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
