package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
)

// prepared is a fitted rule: it converts one or several columns of a table to columns of one field. A kind has a
// row of kinds. Its JSON is read strictly.
type prepared interface {
	of() *source
	label() bool    // Inputs leaves it out
	integers() bool // the field is int32
	shares() bool   // other rules may take its columns too
	width() int
	names() []string
	check() error // also makes what the JSON lacks
	convert(columns []data.Array, to cells) error
}

// source names the columns that a rule takes, and the field. Its methods are those of a rule with one column of
// float32.
type source struct {
	Column  string   `json:"column,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Field   string   `json:"field"`
	As      string   `json:"as"`
	// Texts are the columns that were fitted as texts, of which 17 and 17.0 are two.
	Texts []string `json:"texts,omitempty"`
	// Dims follow [n] in columns of windows of a series.
	Dims []int `json:"dims,omitempty"`
}

func (s *source) of() *source     { return s }
func (*source) label() bool       { return false }
func (*source) integers() bool    { return false }
func (*source) shares() bool      { return false }
func (*source) width() int        { return 1 }
func (s *source) names() []string { return []string{s.title()} }

func (s *source) takes(name string, a data.Array) error {
	if slices.Equal(a.Dims[1:], s.Dims) {
		return nil
	}
	expected := "one value for each example, [n]"
	if len(s.Dims) > 0 {
		expected = "as in fitting [n " + strings.TrimPrefix(fmt.Sprint(s.Dims), "[")
	}
	return fmt.Errorf("column %q is %s %v, expected %s", name, a.DType(), a.Dims, expected)
}

// onTexts refuses numbers if they could be other texts.
func (s *source) onTexts(columns []data.Array) error {
	for i, a := range columns {
		if name := s.taken()[i]; !isTexts(a) && slices.Contains(s.Texts, name) {
			return fmt.Errorf("column %q is %s, and was fitted as texts: give the texts of such a table", name, a.DType())
		}
	}
	return nil
}

func isTexts(a data.Array) bool { _, is := a.Flat.([]string); return is }

func textColumns(names []string, columns []data.Array) (texts []string) {
	for i, a := range columns {
		if isTexts(a) {
			texts = append(texts, names[i])
		}
	}
	return texts
}

func (s *source) title() string {
	if s.As == asFunction {
		return strings.Join(s.taken(), ", ")
	}
	return strings.Join(s.taken(), " x ")
}

func (s *source) taken() []string {
	if len(s.Columns) > 0 {
		return s.Columns
	}
	return []string{s.Column}
}

// cells are a rule's columns in a field, whose rows are stride apart. One of the slices is nil.
type cells struct {
	numbers []float32
	classes []int32
	stride  int
}

func (c cells) from(column int) cells {
	if c.classes != nil {
		c.classes = c.classes[min(column, len(c.classes)):]
	} else {
		c.numbers = c.numbers[min(column, len(c.numbers)):]
	}
	return c
}

func (c cells) class(row int, n int32) {
	if c.classes != nil {
		c.classes[row*c.stride] = n
	} else {
		c.numbers[row*c.stride+int(n)] = 1
	}
}

func (c cells) put(row, column int, v, from float64) error {
	to := &c.numbers[row*c.stride+column]
	if *to = float32(v); math.IsInf(float64(*to), 0) {
		return rowError(row, "%v is too large for a float32", from)
	}
	return nil
}

const (
	asNumber  = "number"
	asOneHot  = "one-hot"
	asInteger = "integer"
	asClass   = "class label"
	asTarget  = "number label"
	asFlag    = "0 or 1 label"
)

var kinds = []struct {
	as    string
	empty func() prepared
}{
	{asNumber, func() prepared { return new(number) }},
	{asOneHot, func() prepared { return new(category) }},
	{asInteger, func() prepared { return new(category) }},
	{asClass, func() prepared { return new(classLabel) }},
	{asTarget, func() prepared { return new(numberLabel) }},
	{asFlag, func() prepared { return new(numberLabel) }},
	{asScaled, func() prepared { return new(numberLabel) }},
	{asLog, func() prepared { return new(numberLabel) }},
	{asDate, func() prepared { return new(date) }},
	{asHashed, func() prepared { return new(hashed) }},
	{asFunction, func() prepared { return new(function) }},
	{asTerms, func() prepared { return new(terms) }},
	{asTokens, func() prepared { return new(tokens) }},
}

func readPrepared(text []byte) (prepared, error) {
	var s source
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	var known []string
	for _, k := range kinds {
		if known = append(known, k.as); k.as != s.As {
			continue
		}
		c := k.empty()
		err := strictly(text, c)
		if err != nil && strings.Contains(err.Error(), "unknown field") {
			err = fmt.Errorf("it has a setting that a %s does not support: %w: a newer lazo may have written it", s.As, err)
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", s.title(), err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("column %q: its As is %q, expected one of %q: a newer lazo may have written it", s.title(), s.As, slices.Compact(known))
}

func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func eachColumn(names []string, columns []data.Array, fit func(name string, column data.Array) (prepared, error)) ([]prepared, error) {
	fitted := make([]prepared, len(names))
	for i, name := range names {
		var err error
		if fitted[i], err = fit(name, columns[i]); err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
	}
	return fitted, nil
}
