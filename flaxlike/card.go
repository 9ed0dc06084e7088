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

// Card describes the training of a model.
type Card struct {
	// Examples and Fields describe the set of the last Fit; a field is "x float32[28 28]". Examples is 0 for batches.
	Examples int      `json:"examples,omitempty"`
	Fields   []string `json:"fields,omitempty"`
	// Epochs is the number of rows in the last or running Fit's history. Fit has the figures of the epoch whose weights
	// the model has, Evaluated those of the last Evaluate. Other changes of the weights empty both.
	Epochs    int                `json:"epochs,omitempty"`
	Fit       map[string]float64 `json:"fit,omitempty"`
	Evaluated map[string]float64 `json:"evaluated,omitempty"`
	// Untrained means that no Fit, step, Open, Load or other change has set the weights, or not before they were saved:
	// they are the random draws of the initializers.
	Untrained bool `json:"untrained,omitempty"`
	// ClassWeights and SampleWeights are the options' arguments.
	ClassWeights  map[int]float64 `json:"class_weights,omitempty"`
	SampleWeights string          `json:"sample_weights,omitempty"`
	// Versions are those of lazo, GoMLX and the plugin that saved the model.
	Versions map[string]string `json:"versions,omitempty"`
	// Saved is the time of saving by [WithClock], or nil.
	Saved *time.Time `json:"saved,omitempty"`
}

func (m *Model) card(now int64) Card {
	m.seen.mu.Lock()
	c, fitted, evaluated := m.seen.card, m.seen.fitted, m.seen.evaluated
	c.Untrained = m.seen.origin == origin{} || c.Untrained && m.seen.origin.carried
	m.seen.mu.Unlock()
	c.Fields, c.Fit, c.Evaluated = slices.Clone(c.Fields), fitted.of(now), evaluated.of(now)
	c.Versions = maps.Clone(c.Versions)
	c.ClassWeights, c.SampleWeights = maps.Clone(m.set.classWeights), m.set.weights
	return c
}

type figures struct {
	at    int64
	found map[string]float64
	row   loop.Logs
}

func (f figures) of(now int64) map[string]float64 {
	switch {
	case f.at != now:
		return nil
	case f.row.Len() > 0:
		return maps.Collect(figuresOf(f.row))
	}
	return maps.Clone(f.found)
}

func (s *seen) carry(c Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.changes.Load()
	s.origin.carried = true
	s.fitted, s.evaluated = figures{at: now, found: c.Fit}, figures{at: now, found: c.Evaluated}
	c.Fit, c.Evaluated = nil, nil
	s.card = c
}

func (m *Model) noteFit(set *data.Set, history *loop.History, began int64) {
	if history.Len() == 0 {
		return
	}
	var last loop.Logs
	now := m.seen.changes.Add(1) // a Fit without a step may restore a checkpoint
	has := m.seen.has(began)
	for at, row := range history.Rows() {
		if at.Steps == has {
			last = row
		}
	}
	m.note(set, history, figures{at: now, row: last})
}

func (m *Model) note(set *data.Set, history *loop.History, fitted figures) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	c := &m.seen.card
	m.seen.fitted, c.Epochs, c.Examples, c.Fields = fitted, history.Len(), 0, nil
	if set == nil {
		return
	}
	if c.Examples = set.Len(); set.Mapped() {
		return
	}
	for _, f := range set.Fields() {
		c.Fields = append(c.Fields, fmt.Sprint(f.Name, " ", f.Array.DType(), " ", f.Array.Dims[1:]))
	}
}

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

func (m *Model) noteEvaluated(found map[string]float64, at int64) {
	finite := maps.Clone(found)
	maps.DeleteFunc(finite, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if at >= m.seen.evaluated.at { // a later Evaluate may have ended earlier
		m.seen.evaluated = figures{at: at, found: finite}
	}
}
