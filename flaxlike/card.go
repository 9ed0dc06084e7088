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
	// last one, or the best with callbacks.KeepBest or checkpoint.KeepBest. Evaluated are those of the last Evaluate.
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

func (m *Model) card() Card {
	m.seen.mu.Lock()
	c, fitted := m.seen.card, m.seen.fitted
	m.seen.mu.Unlock()
	if fitted.Len() > 0 {
		c.Fit = maps.Collect(figuresOf(fitted))
	}
	c.Fields, c.Fit, c.Evaluated = slices.Clone(c.Fields), maps.Clone(c.Fit), maps.Clone(c.Evaluated)
	c.Versions = maps.Clone(c.Versions)
	c.ClassWeights, c.SampleWeights = maps.Clone(m.set.classWeights), m.set.weights
	return c
}

// noteFit has the card say what a Fit came to. Its figures stay on the device until somebody asks.
func (m *Model) noteFit(set *data.Set, history *loop.History) {
	if history.Len() == 0 {
		return
	}
	var last loop.Logs
	undone, end := m.seen.undone.Swap(0), int64(0)
	for at := range history.Rows() {
		end = at.Steps
	}
	has := end - undone // the step of the run whose values the model has
	if r := m.seen.restored.Load(); r != nil && r.trained == m.seen.trained.Load() {
		has = r.step
	}
	for at, row := range history.Rows() { // an epoch of which the state is not there has no figures
		if at.Steps == has {
			last = row
		}
	}
	m.seen.changes.Add(1) // it may have gone on from a checkpoint, and made no step
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	c := &m.seen.card
	m.seen.fitted, c.Epochs, c.Examples, c.Fields = last, history.Len(), 0, nil
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

func (m *Model) noteEvaluated(found map[string]float64) {
	finite := maps.Clone(found)
	maps.DeleteFunc(finite, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	m.seen.card.Evaluated = finite
}
