// Package records reads and writes the rows of a history as files have them: objects of JSON, and tables of CSV.
// Numbers come back to the last bit. It is for package loop, whose histories are written whole, and for the recorders
// of package callbacks, which add a line at a time.
package records

import (
	"fmt"
	"time"
)

// Elapsed is when a row was.
type Elapsed struct {
	Steps, Samples, Epochs int64
	// Batch is the number of examples in the batch of the row's turn, UnknownBatch where its writer did not know it.
	Batch int64
	// Row is the number of the row, from 1, where rows before it were dropped, and else 0.
	Row  int64
	Time time.Duration
	Date int64 // nanoseconds since 1970, 0 if there is none
}

const (
	// UnknownBatch is written as nothing. A reader takes the examples since the row before.
	UnknownBatch = -1
	// Most is the most steps, samples or nanoseconds of a row: what a run adds to it, and the difference of two, never
	// overflow.
	Most = 1 << 62
)

// Row is when something was logged, and the logged numbers by the names of their columns (see Column).
type Row struct {
	Elapsed
	Columns []string
	Numbers []float64
}

// Reset makes r a row without numbers; it keeps the memory of the old ones.
func (r *Row) Reset(at Elapsed) { r.Elapsed, r.Columns, r.Numbers = at, r.Columns[:0], r.Numbers[:0] }

type (
	value   interface{ Float() (float64, error) }
	payload interface{ Any() (any, error) }
)

// Add reads a value of a column. A payload (a method Any) that is no number is left out.
func (r *Row) Add(column string, v value) error {
	number, err := v.Float()
	if err != nil {
		if _, ok := v.(payload); ok {
			return nil
		}
		return fmt.Errorf("step %d: %s: %w", r.Steps, column, err)
	}
	r.Columns, r.Numbers = append(r.Columns, column), append(r.Numbers, number)
	return nil
}

// set reads a field or a number from its text.
func (r *Row) set(column, text string) error {
	if f := fieldOf(column); f != nil {
		return f.parse(&r.Elapsed, text)
	}
	v, err := parseNumber(text)
	if err != nil {
		return err
	}
	r.Columns, r.Numbers = append(r.Columns, column), append(r.Numbers, v)
	return nil
}

// Check gives an error for counts and times that are not 0 to 2^62: no file has them, read or written.
func (r *Row) Check() error {
	for _, f := range [...]struct {
		name, unit string
		n, least   int64
	}{{"steps", "", r.Steps, 0}, {"samples", "", r.Samples, 0}, {epochsField, "", r.Epochs, 0}, {"batch", "", r.Batch, UnknownBatch}, {"row", "", r.Row, 0},
		{"time", " nanoseconds", int64(r.Time), 0}} {
		if f.n > Most || f.n < f.least {
			return fmt.Errorf("step %d: %s.%s is %d, expected 0 to 2^62%s", r.Steps, Collection, f.name, f.n, f.unit)
		}
	}
	return nil
}
