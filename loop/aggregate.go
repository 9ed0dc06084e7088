package loop

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Aggregation makes one value of the values that were logged under one name, in a nested loop for example.
type Aggregation struct {
	name string
	// pick chooses one of n values; if it is nil, of computes a number.
	pick func(n int) int
	of   func(values, samples []float64) float64
}

// Aggregations. All but Last and First need values that are numbers.
var (
	// Last and First take one value, which need not be a number.
	Last  = Aggregation{name: "last", pick: func(n int) int { return n - 1 }}
	First = Aggregation{name: "first", pick: func(int) int { return 0 }}
	// SampleMean weights each value by the number of examples in its batch: of batch means it makes the mean over all
	// examples. If no row had examples, as those that are logged at the end of a run ([AtEnd]) have none, it is the
	// Mean.
	SampleMean = Aggregation{name: "sample mean", of: sampleMean}
	// Mean weights all values equally.
	Mean = Aggregation{name: "mean", of: func(v, _ []float64) float64 { return total(v) / float64(len(v)) }}
	Sum  = Aggregation{name: "sum", of: func(v, _ []float64) float64 { return total(v) }}
	// Min and Max are NaN if a value is.
	Min = Aggregation{name: "min", of: func(v, _ []float64) float64 { return fold(v, math.Min) }}
	Max = Aggregation{name: "max", of: func(v, _ []float64) float64 { return fold(v, math.Max) }}
)

// AggregateBy makes an aggregation of a function. It is given the values of all rows that had the name, at least one
// and oldest first, and the numbers of examples in their batches.
func AggregateBy(name string, of func(values, samples []float64) float64) Aggregation {
	return Aggregation{name: name, of: of}
}

func (a Aggregation) String() string { return a.name }

// Aggregations says how each collection is aggregated. The defaults are [SampleMean] for [Losses] and [Metrics], and
// [Last] for all others.
type Aggregations map[Collection]Aggregation

func (as Aggregations) of(c Collection) Aggregation {
	if a, ok := as[c]; ok {
		return a
	}
	if c == Losses || c == Metrics {
		return SampleMean
	}
	return Last
}

// Err tells which of the aggregations have no function, nil if none is without.
func (as Aggregations) Err() error {
	var errs []error
	for c, a := range as {
		if a.pick == nil && a.of == nil {
			errs = append(errs, fmt.Errorf("aggregation of %s: %w", c, errNoFunction))
		}
	}
	return errors.Join(errs...)
}

// Aggregate makes one entry of each name in the history. Values are read when the entry is.
func (h *History) Aggregate(as Aggregations) Logs {
	var entries []Entry
	for _, c := range h.columns {
		if c.cells.Len() > 0 {
			entries = append(entries, Entry{c.collection, c.name, h.aggregate(c, as.of(c.collection))})
		}
	}
	return Logs{entries: entries}
}

func (h *History) aggregate(c *column, a Aggregation) Value {
	if a.pick != nil {
		return c.value(a.pick(c.cells.Len()))
	}
	return &aggregate{history: h, path: Entry{Collection: c.collection, Name: c.name}.Path(), by: a}
}

// aggregate is a number that is computed when it is read. It releases the history then.
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
		a.err = fmt.Errorf("%s: it did not return", a.by) // stays if it panics: a second reader must not get a zero
		a.number, a.err = a.read()
	})
	return a.number, a.err
}

func (a *aggregate) read() (float64, error) {
	history := a.history
	a.history = nil
	values, samples, err := history.weighted(a.path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.by, nestedError{err})
	}
	return a.by.of(values, samples), nil
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

func fold(values []float64, f func(a, b float64) float64) float64 {
	v := values[0]
	for _, x := range values[1:] {
		v = f(v, x)
	}
	return v
}
