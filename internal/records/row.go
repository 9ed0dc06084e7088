// Package records reads and writes a history's rows as JSON objects and CSV tables, with exact numbers.
package records

import (
	"fmt"
	"time"
)

type Elapsed struct {
	Steps, Samples, Epochs int64
	Batch                  int64
	// Row is the row's number, from 1, if earlier rows were dropped, otherwise 0.
	Row  int64
	Time time.Duration
	Date int64 // nanoseconds since 1970, 0 if unknown
}

const (
	// UnknownBatch is not written. A reader uses the examples since the previous row.
	UnknownBatch = -1
	// Most limits a row's steps, samples and nanoseconds: sums and differences do not overflow.
	Most = 1 << 62
)

type Row struct {
	Elapsed
	Columns []string
	Numbers []float64
}

func (r *Row) Reset(at Elapsed) { r.Elapsed, r.Columns, r.Numbers = at, r.Columns[:0], r.Numbers[:0] }

type (
	value   interface{ Float() (float64, error) }
	payload interface{ Any() (any, error) }
)

// Add adds a column's value, unless it is a payload (a method Any) and not a number.
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
