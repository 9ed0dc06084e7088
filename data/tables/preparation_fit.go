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
)

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

func (l Labels) fit(names []string, columns []data.Array) ([]prepared, error) {
	return eachColumn(names, columns, l.fitColumn)
}

func (l Labels) fitColumn(name string, column data.Array) (prepared, error) {
	of := source{Column: name, Field: cmp.Or(l.Field, "y"), As: asClass}
	if l.Scale != noScale || l.Log {
		return l.fitTarget(of, column)
	}
	if l.Numbers {
		of.As = asTarget
		_, err := numbersOf(column)
		return &numberLabel{of, linear{Scale: 1}}, err
	}
	if len(l.Columns) > 1 {
		of.As = asFlag
		_, err := flagsOf(column)
		return &numberLabel{of, linear{Scale: 1}}, err
	}
	p := &classLabel{source: of}
	_, _, err := p.fitClasses(column, l.Classes, false)
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
	texts, ok := a.Flat.([]string)
	if !ok {
		values, ok := arrays.Floats(a.Flat)
		if !ok || a.DType() == "bool" {
			return nil, fmt.Errorf("it is %s, expected numbers, or texts that are numbers: use Categories for truth values", a.DType())
		}
		if _, shared := a.Flat.([]float64); shared {
			values = slices.Clone(values)
		}
		return finite(values)
	}
	values := make([]float64, len(texts))
	for i, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			values[i] = math.NaN()
			continue
		}
		v, err := arrays.ParseFloat(text, 64)
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = errors.New("expected a finite number")
		}
		if err != nil {
			return nil, rowError(i, "%s is not a number: %w: if it marks a missing value, name it in tables.Missing, which the preparation keeps, or in Format.Missing; if it is a class, use Categories for the column", quoted(text), cause(err))
		}
		values[i] = v
	}
	return values, nil
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
