package series

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Past fills columns, and adds columns of float64 [n], from earlier rows, with pandas' numbers. They are NaN where
// there are too few rows.
type Past struct {
	// Columns are of numbers, or texts that are numbers.
	Columns []string
	// Lags are numbers of rows: "NAME lag 7" is the value 7 rows before, pandas' shift(7).
	Lags []int
	// Means, Mins, Maxs and Stds are numbers of rows up to and with this one: "NAME mean 7" is pandas'
	// rolling(7).mean(). A standard deviation divides by the number of rows - 1.
	Means, Mins, Maxs, Stds []int
	// Forward replaces the Columns by float64 with missing values as the last before, pandas' ffill(); the other columns
	// are made of these. Leading missing values stay NaN.
	Forward bool
	// Group and Time are as in [Windows].
	Group, Time string
}

// Of returns the table with the new columns.
func (p Past) Of(table *data.Set) (*data.Set, error) {
	set, err := p.of(table)
	return named(set, err, "past")
}

func (p Past) of(table *data.Set) (*data.Set, error) {
	r, err := readRows(table, p.Group, p.Time)
	if err != nil {
		return nil, err
	}
	if len(p.Columns) == 0 {
		return nil, errors.New("the Columns are empty, expected columns of numbers")
	}
	fields := table.Fields()
	for _, name := range p.Columns {
		a, err := column(table, name)
		if err != nil {
			return nil, err
		}
		values, err := numbersOf(a)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		if p.Forward {
			values = r.forward(values)
			i := slices.IndexFunc(fields, func(f data.Field) bool { return f.Name == name })
			fields[i] = data.Named(name, values, table.Len())
		}
		for _, of := range []struct {
			what string
			rows []int
			make func([]float64) float64
		}{{"lag", p.Lags, nil}, {"mean", p.Means, mean}, {"min", p.Mins, slices.Min[[]float64]}, {"max", p.Maxs, slices.Max[[]float64]}, {"std", p.Stds, std}} {
			for _, n := range of.rows {
				if n < 1 {
					return nil, fmt.Errorf("a %s of %d rows, expected at least 1", of.what, n)
				}
				fields = append(fields, data.Named(fmt.Sprintf("%s %s %d", name, of.what, n), r.rolling(values, n, of.make), table.Len()))
			}
		}
	}
	return data.New(fields...)
}

func (r rows) forward(values []float64) []float64 {
	values = slices.Clone(values)
	for _, g := range r.groups {
		for i, row := range g {
			if i > 0 && math.IsNaN(values[row]) {
				values[row] = values[g[i-1]]
			}
		}
	}
	return values
}

// rolling is a lag without a function.
func (r rows) rolling(values []float64, n int, of func([]float64) float64) []float64 {
	to := make([]float64, len(values))
	window := make([]float64, n)
	for _, g := range r.groups {
		for i, row := range g {
			switch to[row] = math.NaN(); {
			case of == nil && i >= n:
				to[row] = values[g[i-n]]
			case of != nil && i >= n-1:
				for k := range window {
					window[k] = values[g[i-n+1+k]]
				}
				to[row] = of(window)
			}
		}
	}
	return to
}

func mean(values []float64) float64 {
	m := values[0] // makes the mean of equal values exact
	for _, v := range values {
		m += (v - values[0]) / float64(len(values))
	}
	return m
}

func std(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
