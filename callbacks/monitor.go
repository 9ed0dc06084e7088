package callbacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

// Monitor has settings of [StopEarly], [KeepBest], [OnBest] and [ReduceOnPlateau]. In a resumed run best value and
// patience continue.
type Monitor struct {
	Mode loop.Mode
	// AgainstName allows a Mode that contradicts the name, like a loss to maximize.
	AgainstName bool
	// MinDelta is the least improvement over the best value, finite and at least 0.
	MinDelta float64
	// Baseline is an initial best value, finite; nil means none.
	Baseline *float64
	// StartAt ignores values before this period from the run's beginning.
	StartAt loop.Period

	// Cooldown, for ReduceOnPlateau, is a time after a reduction in which the patience does not run. Evaluations(1)
	// skips one value. Better values still count.
	Cooldown Patience
	// MinRate, for ReduceOnPlateau, is the lower bound of the learning rate, default 1.2e-38, the smallest normal
	// float32. An initial rate below it is an error.
	MinRate float64
	// OnReduce, for ReduceOnPlateau, is called after each reduction.
	OnReduce func(ctx context.Context, r loop.Report, from, to float64) error
}

func joined(list []Monitor) (m Monitor) {
	for _, o := range list {
		m.Mode, m.AgainstName, m.MinDelta = cmp.Or(o.Mode, m.Mode), o.AgainstName || m.AgainstName, cmp.Or(o.MinDelta, m.MinDelta)
		m.Baseline, m.MinRate = cmp.Or(o.Baseline, m.Baseline), cmp.Or(o.MinRate, m.MinRate)
		m.StartAt, m.Cooldown = cmp.Or(o.StartAt, m.StartAt), cmp.Or(o.Cooldown, m.Cooldown)
		if o.OnReduce != nil {
			m.OnReduce = o.OnReduce
		}
	}
	return m
}

func (m *Monitor) check(entry string) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if entry == "" {
		refuse("%w: no entry to watch", records.ErrName)
	} else if mode, err := better.Of(m.Mode, entry); err != nil {
		correct := ""
		if m.Mode == 0 {
			correct = "correct the name, or "
		}
		refuse("%w: %sgive callbacks.Monitor{Mode: loop.Lowest} or loop.Highest", err, correct)
	} else if err := better.Against(mode, entry); err != nil && !m.AgainstName {
		refuse("%w; if this is intended, set AgainstName", err)
	} else {
		m.Mode = mode
	}
	if !(m.MinDelta >= 0) || math.IsInf(m.MinDelta, 0) {
		refuse("min delta must be zero or positive and finite, got %g", m.MinDelta)
	}
	if m.Baseline != nil && !finite(*m.Baseline) {
		refuse("baseline must be finite, got %g", *m.Baseline)
	}
	if m.StartAt != nil && m.StartAt.Length() < 0 {
		refuse("start at: period must be zero or positive, got %v", m.StartAt)
	}
	if _, length, ok := measure(m.Cooldown, loop.Elapsed{}, 0); m.Cooldown != nil && (!ok || length < 0) {
		refuse("cooldown must be zero or positive, in Steps, Samples, Time or Evaluations, got %v", m.Cooldown)
	}
	if !(m.MinRate >= 0) || !finite(m.MinRate) {
		refuse("min rate must be zero or positive and finite, got %g", m.MinRate)
	}
	return errors.Join(errs...)
}

func (m Monitor) notOfPlateau() error {
	for name, set := range map[string]bool{"Cooldown": m.Cooldown != nil, "MinRate": m.MinRate != 0, "OnReduce": m.OnReduce != nil} {
		if set {
			return fmt.Errorf("%s is set, but only ReduceOnPlateau uses it", name)
		}
	}
	return nil
}

type monitor struct {
	Monitor
	entry     string
	best      float64
	bestAt    loop.Elapsed
	found     bool
	since     loop.Elapsed
	waited    int64
	begun     bool
	resumeErr error
}

func newMonitor(entry string, settings []Monitor) (monitor, error) {
	m, err := newPlateauMonitor(entry, settings)
	return m, errors.Join(err, m.notOfPlateau())
}

func newPlateauMonitor(entry string, settings []Monitor) (monitor, error) {
	m := monitor{Monitor: joined(settings), entry: entry}
	err := m.check(entry)
	if m.best = better.Worst(m.Mode); m.Baseline != nil {
		m.best = *m.Baseline
	}
	return m, err
}

func (m *monitor) see(at loop.Elapsed, v float64) bool {
	if m.StartAt != nil && !at.Reached(m.StartAt) {
		return false
	}
	if !m.begun {
		m.begun, m.since = true, at
	}
	if !better.Than(m.Mode, v, m.best, m.MinDelta) {
		m.waited++
		return false
	}
	m.best, m.bestAt, m.found = v, at, true
	m.wait(at)
	return true
}

func (m *monitor) wait(from loop.Elapsed) { m.since, m.waited = from, 0 }

func (m *monitor) patienceOver(p Patience, now loop.Elapsed) bool {
	waited, patience, _ := measure(p, now.Since(m.since), m.waited)
	return m.begun && waited >= patience
}

func (m *monitor) read(r loop.Report) (float64, error) {
	if m.resumeErr != nil {
		return 0, m.resumeErr
	}
	return r.Logs.Float(m.entry)
}

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

type refusal struct {
	name string
	err  error
}

func (r *refusal) Error() string { return "callbacks: " + r.name + ": " + r.err.Error() }
func (r *refusal) Point() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refused(c loop.Callback, err error) loop.Callback {
	c.Err = errors.Join(c.Err, err)
	c.Start = func(loop.Beginning) (loop.Attendant, error) { return nil, &refusal{cmp.Or(c.Name, c.String()), c.Err} }
	return c
}

// resumer: [loop.ErrStop] means that the earlier run had ended.
type resumer interface {
	resume(from loop.Beginning) error
}

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

func changeByValue[A interface {
	loop.Attendant
	resumer
}](name, entry string, start func() (A, error)) loop.Callback {
	_, err := start()
	return loop.Callback{Name: name, Entry: entry, Monitor: true, Changes: true, Err: err, Start: func(from loop.Beginning) (loop.Attendant, error) {
		a, err := start()
		if err == nil {
			err = a.resume(from)
		}
		if err != nil {
			return nil, &refusal{name, err}
		}
		return a, nil
	}}
}

type noEnd struct{}

func (noEnd) End(context.Context, loop.Ending) error { return nil }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
