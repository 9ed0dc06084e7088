package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

type prepared struct {
	Column string `json:"column"`
	Field  string `json:"field"`
	As     string `json:"as"`
	// Fill is nil for none. Then (value - Shift) / Scale.
	Fill      *float64 `json:"fill,omitempty"`
	Indicator bool     `json:"indicator,omitempty"`
	Shift     float64  `json:"shift,omitempty"`
	Scale     float64  `json:"scale,omitempty"`
	Classes   []string `json:"classes,omitempty"`
	FillClass string   `json:"fill_class,omitempty"`
	Unknown   string   `json:"unknown,omitempty"`

	number map[string]int32
}

var unknowns = []string{unknownRefused: "", UnknownOwn: "own", UnknownZeros: "zeros"}

func (c *prepared) label() bool {
	return slices.Contains([]string{asClass, asTarget, asFlag, asScaled, asLog}, c.As)
}

func (c *prepared) width() int { return len(c.names()) }

func (c *prepared) names() []string {
	switch {
	case c.As == asOneHot:
		names := make([]string, 0, len(c.Classes)+1)
		for _, class := range c.Classes {
			names = append(names, c.Column+"="+class)
		}
		if c.Unknown == unknowns[UnknownOwn] {
			names = append(names, c.Column+" unknown")
		}
		return names
	case c.Indicator:
		return []string{c.Column, c.Column + " missing"}
	}
	return []string{c.Column}
}

// Columns returns the column names of inputs and of labels, in the order of fitting.
func (p *Preparation) Columns() (inputs, labels []string) {
	if p == nil {
		return nil, nil
	}
	for i := range p.columns {
		if c := &p.columns[i]; c.label() {
			labels = append(labels, c.Column)
		} else {
			inputs = append(inputs, c.Column)
		}
	}
	return inputs, labels
}

// Apply converts a batch of a table to inputs and labels, for [data.Set.Map] and data.Map. A [data.Mask] is kept.
func (p *Preparation) Apply(table data.Batch) (data.Batch, error) {
	return p.prepare(table, true, "apply")
}

// Inputs is Apply without labels or their columns.
func (p *Preparation) Inputs(table data.Batch) (data.Batch, error) {
	return p.prepare(table, false, "inputs")
}

func (p *Preparation) prepare(table data.Batch, labels bool, what string) (data.Batch, error) {
	b, err := p.fields(table, labels)
	if err != nil {
		return data.Batch{}, fmt.Errorf("tables: preparation: %s: %w", what, err)
	}
	return b, nil
}

func (p *Preparation) fields(table data.Batch, labels bool) (data.Batch, error) {
	if p == nil || len(p.columns) == 0 {
		return data.Batch{}, errZero
	}
	table, err := table.OnHost()
	if err != nil {
		return data.Batch{}, err
	}
	b := table
	b.Fields = nil
	for _, field := range p.fieldNames() {
		of := p.of(field)
		if of[0].label() && !labels {
			continue
		}
		a, err := p.together(of, table)
		if err != nil {
			return data.Batch{}, err
		}
		b.Fields = append(b.Fields, data.Field{Name: field, Array: a})
	}
	if len(b.Fields) == 0 {
		return data.Batch{}, errors.New("it has only labels, expected inputs")
	}
	if mask, err := table.Field(data.Mask); err == nil {
		b.Fields = append(b.Fields, data.Field{Name: data.Mask, Array: mask})
	}
	return b, nil
}

func (p *Preparation) fieldNames() (names []string) {
	seen := map[string]bool{}
	for _, c := range p.columns {
		if !seen[c.Field] {
			names = append(names, c.Field)
		}
		seen[c.Field] = true
	}
	return names
}

func (p *Preparation) of(field string) (columns []*prepared) {
	for i := range p.columns {
		if p.columns[i].Field == field {
			columns = append(columns, &p.columns[i])
		}
	}
	return columns
}

func (p *Preparation) together(columns []*prepared, table data.Batch) (data.Array, error) {
	rows, width := 0, 0
	for _, c := range columns {
		width += c.width()
	}
	var numbers []float32
	var classes []int32
	at := 0
	for i, c := range columns {
		column, err := p.column(table.Fields, c.Column)
		if err != nil {
			return data.Array{}, fmt.Errorf("%w (it was fitted as a %s)", err, c.As)
		}
		if i == 0 {
			rows = column.Dims[0]
			size, ok := arrays.Size(rows, width)
			if !ok {
				return data.Array{}, fmt.Errorf("field %q has %d numbers for each of %d examples, expected at most %d in all", c.Field, width, rows, arrays.MostElements)
			}
			if c.integers() {
				classes = make([]int32, size)
			} else {
				numbers = make([]float32, size)
			}
		}
		if column.Dims[0] != rows {
			return data.Array{}, fmt.Errorf("column %q has %d examples, but column %q has %d", c.Column, column.Dims[0], columns[0].Column, rows)
		}
		if c.integers() {
			err = c.classes(column, func(row int, n int32) { classes[row*width+at] = n })
		} else {
			err = c.numbers(column, numbers[at:], width)
		}
		if err != nil {
			return data.Array{}, fmt.Errorf("column %q: %w", c.Column, err)
		}
		at += c.width()
	}
	dims := []int{rows, width}
	if width == 1 && (columns[0].label() || columns[0].integers()) {
		dims = dims[:1]
	}
	if classes != nil {
		return data.Array{Flat: classes, Dims: dims}, nil
	}
	return data.Array{Flat: numbers, Dims: dims}, nil
}

func (c *prepared) integers() bool { return c.As == asInteger || c.As == asClass }

func (c *prepared) numbers(column data.Array, to []float32, width int) error {
	if c.As == asOneHot {
		return c.classes(column, func(row int, n int32) {
			if n >= 0 {
				to[row*width+int(n)] = 1
			}
		})
	}
	read := numbersOf
	if c.As == asFlag {
		read = flagsOf
	}
	values, err := read(column)
	if err != nil {
		return err
	}
	for i, v := range values {
		switch {
		case !math.IsNaN(v):
		case c.label():
			return rowError(i, "the label is missing: leave such examples out (Set.Where)")
		case c.Fill == nil:
			return rowError(i, "the value is missing: set Numbers.Fill, and fit the preparation again")
		default:
			v = *c.Fill
			if c.Indicator {
				to[i*width+1] = 1
			}
		}
		if v, err = c.transformed(v); err != nil {
			return rowError(i, "%w", err)
		}
		if to[i*width] = float32((v - c.Shift) / c.Scale); math.IsInf(float64(to[i*width]), 0) {
			return rowError(i, "%v is too large for a float32", v)
		}
	}
	return nil
}

func (c *prepared) classes(column data.Array, put func(row int, n int32)) error {
	texts, err := textsOf(column)
	if err != nil {
		return err
	}
	for i, text := range texts {
		if text == "" {
			text = c.FillClass
		}
		n, known := c.number[text]
		switch {
		case known:
		case text == "" && c.As == asClass:
			return rowError(i, "the label is missing: leave such examples out (Set.Where)")
		case text == "":
			return rowError(i, "the value is missing: set Categories.Fill, and fit the preparation again")
		case c.Unknown == unknowns[UnknownOwn]:
			n = int32(len(c.Classes))
		case c.Unknown == unknowns[UnknownZeros]:
			n = -1
		default:
			hint := ""
			if !c.label() {
				hint = "; to accept other classes, set Categories.Unknown, and fit the preparation again"
			}
			return rowError(i, "%s is not a class of the training data: expected one of %d: %s%s", quoted(text), len(c.Classes), listed.Some(c.Classes), hint)
		}
		put(i, n)
	}
	return nil
}

func rowError(i int, format string, args ...any) error {
	return fmt.Errorf("row %d: "+format, append([]any{i + 1}, args...)...)
}

// Classes returns the classes of a field of labels or integers, by index; [UnknownOwn] has the next one. For labels of
// several columns it returns their names.
func (p *Preparation) Classes(field string) ([]string, error) {
	of, err := p.columnsOf(field)
	if err == nil && of[0].As == asFlag {
		return p.Names(field)
	}
	if err == nil && (len(of) > 1 || !of[0].integers()) {
		err = fmt.Errorf("field %q holds %s, expected the class numbers of one column", field, of[0].As)
	}
	if err != nil {
		return nil, fmt.Errorf("tables: preparation: classes: %w", err)
	}
	return slices.Clone(of[0].Classes), nil
}

// Names returns the names of a field's columns: "mass", "mass missing", "island=Dream".
func (p *Preparation) Names(field string) ([]string, error) {
	of, err := p.columnsOf(field)
	if err != nil {
		return nil, fmt.Errorf("tables: preparation: names: %w", err)
	}
	var names []string
	for _, c := range of {
		names = append(names, c.names()...)
	}
	return names, nil
}

func (p *Preparation) columnsOf(field string) ([]*prepared, error) {
	if p == nil {
		p = &Preparation{}
	}
	of := p.of(field)
	if of == nil {
		return nil, fmt.Errorf("it makes no field %q; there are %q", field, p.fieldNames())
	}
	return of, nil
}
