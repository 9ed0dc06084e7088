package loop

import (
	"errors"
	"fmt"
	"sync"
)

// Aggregation computes one value from a name's values. The default is the newest, of [Losses] and [Metrics] the mean
// weighted by examples (the plain mean if no row had any, as of [AtEnd]). The zero Aggregation takes the newest.
type Aggregation struct {
	// With a Name, which appears in errors, Of is required.
	Name string
	// Of computes the value from all the name's numbers (at least one, oldest first) and their examples.
	Of func(values, samples []float64) float64
}

var weightedMean = Aggregation{Name: "sample mean", Of: sampleMean}

func aggregationOf(as map[Collection]Aggregation, c Collection) Aggregation {
	a, ok := as[c]
	if !ok && (c == Losses || c == Metrics) {
		return weightedMean
	}
	return a
}

func checkAggregations(as map[Collection]Aggregation) error {
	var errs []error
	for c, a := range as {
		if a.Name != "" && a.Of == nil {
			errs = append(errs, fmt.Errorf("aggregation of %s: %w", c, errNoFunction))
		}
	}
	return errors.Join(errs...)
}

// Aggregate returns an entry for each name, computed when read.
func (h *History) Aggregate(as map[Collection]Aggregation) Logs {
	var entries []Entry
	for _, c := range h.columns {
		if c.Len() > 0 {
			entries = append(entries, Entry{c.collection, c.name, h.aggregate(c, aggregationOf(as, c.collection))})
		}
	}
	return Logs{entries: entries}
}

func (h *History) aggregate(c *column, a Aggregation) Value {
	if a.Of == nil {
		return c.Value(c.Len() - 1)
	}
	return &aggregate{history: h, path: Entry{Collection: c.collection, Name: c.name}.Path(), by: a}
}

type aggregate struct {
	once    sync.Once
	history *History
	path    string
	by      Aggregation
	number  float64
	err     error
}

func (a *aggregate) Float() (float64, error) {
	a.once.Do(func() {
		a.err = fmt.Errorf("%s: it did not return", a.by.Name) // for a second reader after a panic
		a.number, a.err = a.read()
	})
	return a.number, a.err
}

func (a *aggregate) read() (float64, error) {
	history := a.history
	a.history = nil
	values, samples, err := history.weighted(a.path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.by.Name, nestedError{err})
	}
	return a.by.Of(values, samples), nil
}

func sampleMean(values, samples []float64) float64 {
	sum, weight := 0.0, total(samples)
	if weight == 0 {
		return total(values) / float64(len(values))
	}
	for i, v := range values {
		sum += v * samples[i]
	}
	return sum / weight
}

func total(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}
