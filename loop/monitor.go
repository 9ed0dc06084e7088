package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Mode says which values of an entry are the better ones.
type Mode int

const (
	// Auto goes by the name of the entry: the higher the better if a word of it ends in acc, accuracy or auc, else the
	// lower. If there are several such words, or one that ends in loss or error, the last one decides, so that
	// "accuracy_test" is an accuracy and "auc_loss" a loss. It knows no other names: say Highest for a precision.
	//
	// Keras looks for "acc" anywhere in the name, Jaxloop at its end alone; we look at words because evaluations put
	// their own name behind.
	Auto Mode = iota
	// Lowest is for losses and errors.
	Lowest
	// Highest is for accuracies.
	Highest
)

func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Lowest:
		return "lowest"
	case Highest:
		return "highest"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// of is the mode for an entry, never Auto.
func (m Mode) of(entry string) (Mode, error) {
	switch m {
	case Lowest, Highest:
		return m, nil
	case Auto:
		return autoMode(entry), nil
	}
	return m, fmt.Errorf("mode must be Lowest, Highest or Auto, got %s", m)
}

func autoMode(entry string) Mode {
	mode := Lowest
	words := strings.FieldsFunc(strings.ToLower(entry), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		switch {
		case endsIn(word, "acc", "accuracy", "auc"):
			mode = Highest
		case endsIn(word, "loss", "error"):
			mode = Lowest
		}
	}
	return mode
}

func endsIn(word string, endings ...string) bool {
	for _, e := range endings {
		if strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}

// beats tells whether v is better than best by more than delta. What is not finite beats nothing: a loss of -Inf is a
// fault, and nothing could ever beat it again.
func (m Mode) beats(v, best, delta float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return false
	case m == Highest:
		return v > best+delta
	}
	return v < best-delta
}

// worst is what every finite value beats.
func (m Mode) worst() float64 {
	if m == Highest {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

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
func StartAt(p Period) MonitorOption {
	return func(m *monitor) {
		if p == nil || p.length() < 0 {
			m.errs = append(m.errs, fmt.Errorf("start at: period must be zero or positive, got %v", p))
		}
		m.start = p
	}
}

// monitor follows the values of one entry. It is a function of them alone, so a resumed run makes it again of the
// history.
type monitor struct {
	entry    string
	mode     Mode // Lowest or Highest
	minDelta float64
	baseline *float64
	start    Period // nil if all values count
	best     Best
	found    bool // a value was better: best is one
	// Waiting is measured from here: the best value, or without one the first.
	since  Elapsed
	waited int64 // values since then that were no better
	begun  bool
	// plateau has the settings that mean something to a plateau only.
	plateau plateauSettings
	errs    []error
	// resumeErr is why an earlier run's values could not be read; the first Watch returns it.
	resumeErr error
}

func newMonitor(entry string, mode Mode, options []MonitorOption) (monitor, error) {
	m := monitor{entry: entry}
	var err error
	if m.mode, err = mode.of(entry); err != nil {
		m.errs = append(m.errs, err)
	}
	if entry == "" {
		m.errs = append(m.errs, fmt.Errorf("%w: no entry to watch", ErrName))
	}
	for _, o := range options {
		if o != nil {
			o(&m)
		}
	}
	m.best.Value = m.mode.worst()
	if m.baseline != nil {
		m.best.Value = *m.baseline
	}
	return m, errors.Join(m.errs...)
}

// see takes the next value and tells whether it is better.
func (m *monitor) see(at Elapsed, v float64) bool {
	if m.start != nil && !at.Reached(m.start) {
		return false
	}
	if !m.begun {
		m.begun, m.since = true, at
	}
	if !m.mode.beats(v, m.best.Value, m.minDelta) {
		m.waited++
		return false
	}
	m.best, m.found = Best{Value: v, Elapsed: at}, true
	m.wait(at)
	return true
}

// wait begins to wait anew.
func (m *monitor) wait(from Elapsed) { m.since, m.waited = from, 0 }

// spent tells whether the patience is over.
func (m *monitor) spent(p Patience, now Elapsed) bool {
	return m.begun && p.measure(now.Since(m.since), m.waited) >= p.length()
}

// read is the value of the turn.
func (m *monitor) read(r Report) (float64, error) {
	if m.resumeErr != nil {
		return 0, m.resumeErr
	}
	return r.Logs.Float(m.entry)
}

// replay shows the values of an earlier run, as far as this one goes on from them.
func (m *monitor) replay(from Elapsed, h *History, when *Schedule, see func(Elapsed, float64)) {
	if h == nil {
		return
	}
	var last Elapsed
	err := h.each(m.entry, func(r row, v float64) {
		due := when == nil || when.Due(last, r.elapsed)
		last = r.elapsed
		if due && r.elapsed.Steps <= from.Steps {
			see(r.elapsed, v)
		}
	})
	if err != nil && !errors.Is(err, ErrNoEntry) {
		m.resumeErr = fmt.Errorf("earlier values: %w", err)
	}
}

// resumer is an attendant that can go on where the one of an earlier run ended.
type resumer interface {
	Attendant
	// when says which turns count, nil for all.
	resume(from Elapsed, h *History, when *Schedule)
}

// watchValue is [AttendEntry] for a resumer. It is made once before the run to see whether it can be.
func watchValue[T resumer](name, entry string, start func() (T, error)) Option {
	return func(s *settings) {
		w := watching{name: name, entry: entry, when: EachStep.AndAtStart().AndAtEnd(), monitor: true}
		_, w.err = start()
		w.start = func() Attendant {
			a, err := start()
			if err != nil {
				return nil // the run was refused already
			}
			a.resume(s.from, s.resumed, s.monitored)
			return a
		}
		s.watchers = append(s.watchers, w)
	}
}

// noEnd is for attendants that need not know the end.
type noEnd struct{}

// End does nothing.
func (noEnd) End(context.Context, Ending) error { return nil }
