package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
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

func (n Numbers) fit(name string, column data.Array) (prepared, error) {
	c := prepared{Column: name, Field: cmp.Or(n.Field, "x"), As: asNumber, Scale: 1, Indicator: n.Indicator}
	values, err := numbersOf(column)
	if err != nil {
		return c, err
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
		return c, fmt.Errorf("%d of %d values are missing, the first one in row %d: set Numbers.Fill, or leave such examples out (Set.Where)",
			len(values)-len(there), len(values), first+1)
	case n.Fill == FillValue:
		c.Fill = new(n.Value)
	case n.Fill != noFill && len(there) == 0:
		return c, errors.New("all values are missing, so none can be computed to fill in: leave the column out, or use FillValue")
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
			return c, err
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

func (c Categories) rule() ([]string, string, error) {
	switch {
	case c.Fill != noFill && c.Fill != FillMostFrequent && c.Fill != FillValue || c.Unknown < unknownRefused || c.Unknown > UnknownZeros:
		return nil, "", fmt.Errorf("the Fill is %d and the Unknown %d: expected 0, FillMostFrequent or FillValue, and one of the constants of package tables", c.Fill, c.Unknown)
	case (c.Value != "") != (c.Fill == FillValue):
		return nil, "", fmt.Errorf("the Value is %q and the Fill %d: expected a text with tables.FillValue, and no text with another Fill", c.Value, c.Fill)
	case c.Integers && c.Unknown == UnknownZeros:
		return nil, "", errors.New("Unknown is UnknownZeros, but Integers has no columns to be 0: use UnknownOwn")
	}
	return c.Columns, cmp.Or(c.Field, "x"), nil
}

const allDifferent = 10

func (c Categories) fit(name string, column data.Array) (prepared, error) {
	p := prepared{Column: name, Field: cmp.Or(c.Field, "x"), As: asOneHot, Unknown: unknowns[c.Unknown]}
	if c.Integers {
		p.Field, p.As = cmp.Or(c.Field, name), asInteger
	}
	texts, first, err := p.fitClasses(column, c.Classes)
	if err != nil {
		return p, err
	}
	if len(c.Columns) == 0 && c.Classes == nil && len(texts) >= allDifferent && len(p.Classes) == len(texts) {
		return p, fmt.Errorf("all its %d values differ, as those of ids and dates, so they carry no information about other examples: drop the column, or name it in Categories.Columns",
			len(texts))
	}
	switch {
	case c.Fill == noFill && first >= 0:
		return p, rowError(first, "the value is missing: set Categories.Fill, or leave such examples out (Set.Where)")
	case c.Fill == FillMostFrequent:
		if len(texts) == 0 {
			return p, errors.New("all values are missing, so none can be computed to fill in: leave the column out, or use FillValue")
		}
		p.FillClass = mostFrequent(texts)
	case c.Fill == FillValue:
		if p.FillClass = c.Value; !slices.Contains(p.Classes, c.Value) {
			p.Classes = append(slices.Clone(p.Classes), c.Value)
			if c.Classes == nil {
				sortClasses(p.Classes)
			}
		}
	}
	return p, nil
}

func (c *prepared) fitClasses(column data.Array, given []string) (texts []string, first int, err error) {
	all, err := textsOf(column)
	if err != nil {
		return nil, 0, err
	}
	first = -1
	for i, text := range all {
		switch {
		case text != "":
			texts = append(texts, text)
			if given != nil && !slices.Contains(given, text) && c.Unknown == unknowns[unknownRefused] {
				return nil, 0, rowError(i, "%s is not one of Classes, %s", quoted(text), listed.Some(given))
			}
		case first < 0:
			first = i
		}
	}
	slices.Sort(texts)
	if c.Classes = slices.Clone(given); given == nil {
		c.Classes = slices.Compact(slices.Clone(texts))
		sortClasses(c.Classes)
	}
	return texts, first, nil
}

func sortClasses(classes []string) {
	number := func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && strconv.FormatInt(n, 10) == text
	}
	if slices.ContainsFunc(classes, func(text string) bool { _, ok := number(text); return !ok }) {
		slices.Sort(classes)
		return
	}
	slices.SortFunc(classes, func(a, b string) int {
		x, _ := number(a)
		y, _ := number(b)
		return cmp.Compare(x, y)
	})
}

func (l Labels) rule() ([]string, string, error) {
	switch {
	case len(l.Columns) == 0 || slices.Contains(l.Columns, ""):
		return nil, "", fmt.Errorf("the Columns are %q, expected the names of the columns with the labels", l.Columns)
	case len(l.Columns) > 1 && l.Classes != nil:
		return nil, "", fmt.Errorf("both Classes and the Columns %q, each of which is a class, are set: expected one of them", l.Columns)
	case l.Numbers && l.Classes != nil:
		return nil, "", errors.New("both Numbers and Classes are set: expected one of them")
	}
	return l.Columns, cmp.Or(l.Field, "y"), l.checkScale()
}

func (l Labels) fit(name string, column data.Array) (prepared, error) {
	p := prepared{Column: name, Field: cmp.Or(l.Field, "y"), As: asClass}
	if l.Scale != noScale || l.Log {
		return l.fitTarget(p, column)
	}
	if l.Numbers {
		p.As, p.Scale = asTarget, 1
		_, err := numbersOf(column)
		return p, err
	}
	if len(l.Columns) > 1 {
		p.As, p.Scale = asFlag, 1
		_, err := flagsOf(column)
		return p, err
	}
	_, _, err := p.fitClasses(column, l.Classes)
	return p, err
}

func flagsOf(a data.Array) ([]float64, error) {
	texts, err := textsOf(a)
	values := make([]float64, len(texts))
	for i, text := range texts {
		switch strings.ToLower(text) {
		case "1", "true":
			values[i] = 1
		case "0", "false":
		case "":
			values[i] = math.NaN()
		default:
			return nil, rowError(i, "%s is not one of 0, 1, false and true: with several columns of labels, each column is one class, and its value says whether the example belongs to it", quoted(text))
		}
	}
	return values, err
}

func numbersOf(a data.Array) ([]float64, error) {
	switch flat := a.Flat.(type) {
	case []string:
		values := make([]float64, len(flat))
		for i, text := range flat {
			if text = strings.TrimSpace(text); text == "" {
				values[i] = math.NaN()
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				err = errors.New("expected a finite number")
			}
			if err != nil {
				return nil, rowError(i, "%s is not a number: %w: if it marks a missing value, name it in tables.Missing, which the preparation keeps, or in Format.Missing; if it is a class, use Categories for the column", quoted(text), cause(err))
			}
			values[i] = v
		}
		return values, nil
	case []uint64:
		return floating(flat), nil
	case []float32:
		return finite(floating(flat))
	case []float64:
		return finite(slices.Clone(flat))
	}
	whole, err := arrays.Integers(a.Flat)
	if err != nil {
		return nil, fmt.Errorf("it is %s, expected numbers, or texts that are numbers: use Categories for truth values", a.DType())
	}
	return floating(whole), nil
}

func floating[T int64 | uint64 | float32](from []T) []float64 {
	to := make([]float64, len(from))
	for i, v := range from {
		to[i] = float64(v)
	}
	return to
}

func finite(values []float64) ([]float64, error) {
	for i, v := range values {
		if math.IsInf(v, 0) {
			return nil, rowError(i, "it is %v, expected a finite number, or NaN for a missing one", v)
		}
	}
	return values, nil
}

func textsOf(a data.Array) ([]string, error) {
	switch flat := a.Flat.(type) {
	case []string:
		return written(flat, strings.TrimSpace), nil
	case []bool:
		return written(flat, strconv.FormatBool), nil
	case []uint64:
		return written(flat, func(v uint64) string { return strconv.FormatUint(v, 10) }), nil
	case []float32:
		return written(flat, func(v float32) string { return decimal(float64(v), 32) }), nil
	case []float64:
		return written(flat, func(v float64) string { return decimal(v, 64) }), nil
	}
	whole, err := arrays.Integers(a.Flat)
	return written(whole, func(v int64) string { return strconv.FormatInt(v, 10) }), err
}

func written[T any](from []T, text func(T) string) []string {
	to := make([]string, len(from))
	for i, v := range from {
		to[i] = text(v)
	}
	return to
}

func decimal(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return ""
	case math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', -1, bits)
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}
