package flaxlike

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// Card says what a model was trained on and what came of it.
type Card struct {
	// Examples are those of the set that the last Fit trained on, 0 if it was none, and Fields its fields, as "x float32
	// [28 28]".
	Examples int      `json:"examples,omitempty"`
	Fields   []string `json:"fields,omitempty"`
	// Epochs are the rows of the history of the last Fit, and Fit the figures of the epoch whose state the model has: the
	// last one, or the best with callbacks.KeepBest or checkpoint.KeepBest. Evaluated are those of the last Evaluate. Both
	// are of the weights that the model has: none are there after a change of these, as a Load, a step of training, or a
	// run that ended inside of an epoch.
	Epochs    int                `json:"epochs,omitempty"`
	Fit       map[string]float64 `json:"fit,omitempty"`
	Evaluated map[string]float64 `json:"evaluated,omitempty"`
	// ClassWeights and SampleWeights are what [WithClassWeights] and [WithSampleWeights] were given.
	ClassWeights  map[int]float64 `json:"-"`
	SampleWeights string          `json:"-"`
	// Versions are those of lazo, of GoMLX and of the plugin that the model was saved with.
	Versions map[string]string `json:"versions,omitempty"`
	// Saved is when the model was saved, by the clock of [WithClock]; nil without one.
	Saved *time.Time `json:"saved,omitempty"`
}

// card has the figures of the weights after so many changes.
func (m *Model) card(now int64) Card {
	m.seen.mu.Lock()
	c, fitted, evaluated := m.seen.card, m.seen.fitted, m.seen.evaluated
	m.seen.mu.Unlock()
	c.Fields, c.Fit, c.Evaluated = slices.Clone(c.Fields), fitted.of(now), evaluated.of(now)
	c.Versions = maps.Clone(c.Versions)
	c.ClassWeights, c.SampleWeights = maps.Clone(m.set.classWeights), m.set.weights
	return c
}

// figures are those of a model's weights after so many changes.
type figures struct {
	at    int64
	found map[string]float64
	row   loop.Logs // in place of found: those of an epoch, which stay on the device until somebody asks
}

// of are the figures of the weights after so many changes: none if they are of others.
func (f figures) of(now int64) map[string]float64 {
	switch {
	case f.at != now:
		return nil
	case f.row.Len() > 0:
		return maps.Collect(figuresOf(f.row))
	}
	return maps.Clone(f.found)
}

// carry takes the card of a file, whose figures are of the weights as they are now.
func (s *seen) carry(c Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.changes.Load()
	s.fitted, s.evaluated = figures{at: now, found: c.Fit}, figures{at: now, found: c.Evaluated}
	c.Fit, c.Evaluated = nil, nil
	s.card = c
}

// noteFit has the card say what a Fit came to, whose run began behind a step.
func (m *Model) noteFit(set *data.Set, history *loop.History, began int64) {
	if history.Len() == 0 {
		return
	}
	var last loop.Logs
	now := m.seen.changes.Add(1) // it may have gone on from a checkpoint, and made no step
	has := m.seen.has(began)
	for at, row := range history.Rows() { // an epoch of which the state is not there has no figures
		if at.Steps == has {
			last = row
		}
	}
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	c := &m.seen.card
	m.seen.fitted, c.Epochs, c.Examples, c.Fields = figures{at: now, row: last}, history.Len(), 0, nil
	if set == nil {
		return
	}
	if c.Examples = set.Len(); set.Mapped() { // what its batches have it does not know
		return
	}
	for _, f := range set.Fields() {
		c.Fields = append(c.Fields, fmt.Sprint(f.Name, " ", f.Array.DType(), " ", f.Array.Dims[1:]))
	}
}

// figuresOf are the finite numbers of a row that are no arrays.
func figuresOf(logs loop.Logs) func(yield func(string, float64) bool) {
	return func(yield func(string, float64) bool) {
		for e := range logs.All() {
			if !e.IsNumber() {
				continue
			}
			if v, err := e.Value.Float(); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && !yield(e.Name, v) {
				return
			}
		}
	}
}

// noteEvaluated has the card say what was found of the weights after so many changes.
func (m *Model) noteEvaluated(found map[string]float64, at int64) {
	finite := maps.Clone(found)
	maps.DeleteFunc(finite, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if at >= m.seen.evaluated.at { // another Evaluate may have begun later, and ended before
		m.seen.evaluated = figures{at: at, found: finite}
	}
}
