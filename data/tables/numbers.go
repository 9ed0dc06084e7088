package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Numbers converts columns of numbers, or of texts that are numbers, to float32 in a field [n, …].
type Numbers struct {
	// Columns are names. Empty means all that no other item names.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Fill replaces missing values, before scaling, Value with FillValue.
	Fill  Fill
	Value float64
	// Indicator adds a column after each: 1 if the value was missing, else 0.
	Indicator bool
	Scale     Scale
}

// Scale scales numbers. The zero Scale leaves them. A column that is constant in the training data becomes 0.
type Scale int

const (
	noScale  Scale = iota
	Standard       // mean 0, standard deviation 1
	MinMax         // training minimum 0, maximum 1; no clipping
)

func (n Numbers) rule() ([]string, string, error) {
	switch {
	case n.Fill < noFill || n.Fill > FillValue || n.Scale < noScale || n.Scale > MinMax:
		return nil, "", fmt.Errorf("the Fill is %d and the Scale %d: expected the constants of package tables", n.Fill, n.Scale)
	case n.Value != 0 && n.Fill != FillValue:
		return nil, "", fmt.Errorf("the Value is %v, which is only used with Fill: tables.FillValue", n.Value)
	case math.IsNaN(n.Value) || math.IsInf(n.Value, 0):
		return nil, "", fmt.Errorf("the Value is %v, expected a finite number", n.Value)
	case n.Indicator && n.Fill == noFill:
		return nil, "", errors.New("the Indicator is set, but no Fill: without Fill a missing value is an error")
	}
	return n.Columns, cmp.Or(n.Field, "x"), nil
}

func (n Numbers) fit(names []string, columns []data.Array) ([]prepared, error) {
	return eachColumn(names, columns, n.fitColumn)
}

func (n Numbers) fitColumn(name string, column data.Array) (prepared, error) {
	c := &number{source: source{Column: name, Field: cmp.Or(n.Field, "x"), As: asNumber}, linear: linear{Scale: 1}, Indicator: n.Indicator}
	values, err := numbersOf(column)
	if err != nil {
		return nil, err
	}
	var there []float64
	first := -1
	for i, v := range values {
		switch {
		case !math.IsNaN(v):
			there = append(there, v)
		case first < 0:
			first = i
		}
	}
	switch {
	case n.Fill == noFill && first >= 0:
		return nil, fmt.Errorf("%d of %d values are missing, the first one in row %d: set Numbers.Fill, or leave such examples out (Set.Where)",
			len(values)-len(there), len(values), first+1)
	case n.Fill == FillValue:
		c.Fill = new(n.Value)
	case n.Fill != noFill && len(there) == 0:
		return nil, errors.New("all values are missing, so none can be computed to fill in: leave the column out, or use FillValue")
	case n.Fill != noFill:
		c.Fill = new(filling(there, n.Fill))
	}
	if first >= 0 {
		for i, v := range values {
			if math.IsNaN(v) {
				values[i] = *c.Fill
			}
		}
	}
	switch n.Scale {
	case Standard:
		s, err := fitScaling(data.Array{Flat: values, Dims: []int{len(values)}})
		if err != nil {
			return nil, err
		}
		c.Shift, c.Scale = s.Mean[0], s.Std[0]
	case MinMax:
		least, most := slices.Min(values), slices.Max(values)
		c.Shift = least
		if c.Scale = most - least; c.Scale < 10*epsilon { // scikit-learn's bound
			c.Scale = 1
		}
	}
	return c, nil
}

func filling(values []float64, by Fill) float64 {
	slices.Sort(values)
	switch by {
	case FillMean:
		mean := values[0] // makes the mean of equal values exact
		for _, v := range values {
			mean += (v - values[0]) / float64(len(values))
		}
		return mean
	case FillMedian:
		n := len(values)
		return values[(n-1)/2]/2 + values[n/2]/2
	}
	return mostFrequent(values)
}

func mostFrequent[T cmp.Ordered](sorted []T) (most T) {
	best := 0
	for i := 0; i < len(sorted); {
		from := i
		for i < len(sorted) && sorted[i] == sorted[from] {
			i++
		}
		if i-from > best {
			best, most = i-from, sorted[from]
		}
	}
	return most
}

type number struct {
	source
	Fill      *float64 `json:"fill,omitempty"`
	Indicator bool     `json:"indicator,omitempty"`
	linear
}

// linear is (value - Shift) / Scale.
type linear struct {
	Shift float64 `json:"shift,omitempty"`
	Scale float64 `json:"scale,omitempty"`
}

func (l *linear) scaled(v float64) float64 { return (v - l.Shift) / l.Scale }

func (l *linear) check() error {
	if !isFinite(l.Shift) || !isFinite(l.Scale) || l.Scale == 0 {
		return fmt.Errorf("the shift %v and the scale %v: expected finite numbers, and no scale of 0", l.Shift, l.Scale)
	}
	return nil
}

func isFinite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

func (c *number) width() int { return len(c.names()) }

func (c *number) names() []string {
	if c.Indicator {
		return []string{c.Column, c.Column + " missing"}
	}
	return []string{c.Column}
}

func (c *number) check() error {
	switch {
	case c.Fill != nil && !isFinite(*c.Fill):
		return fmt.Errorf("the value to fill in is %v, expected a finite number", *c.Fill)
	case c.Indicator && c.Fill == nil:
		return errors.New("an indicator without a value to fill in: set Numbers.Fill")
	}
	return c.linear.check()
}

func (c *number) convert(columns []data.Array, to cells) error {
	values, err := numbersOf(columns[0])
	if err != nil {
		return err
	}
	for i, v := range values {
		if math.IsNaN(v) {
			if c.Fill == nil {
				return rowError(i, "the value is missing: set Numbers.Fill, and fit the preparation again")
			}
			v = *c.Fill
			if c.Indicator {
				to.numbers[i*to.stride+1] = 1
			}
		}
		if err := to.put(i, 0, c.scaled(v), v); err != nil {
			return err
		}
	}
	return nil
}
