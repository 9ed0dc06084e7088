package tables

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// Columns returns the column names of inputs and of labels, in the order of fitting.
func (p *Preparation) Columns() (inputs, labels []string) {
	if p == nil {
		return nil, nil
	}
	for _, c := range p.columns {
		to := &inputs
		if c.label() {
			to = &labels
		}
		for _, name := range c.of().taken() {
			if !slices.Contains(*to, name) {
				*to = append(*to, name)
			}
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
		of := p.in(field)
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
		field := c.of().Field
		if !seen[field] {
			names = append(names, field)
		}
		seen[field] = true
	}
	return names
}

func (p *Preparation) in(field string) (columns []prepared) {
	for _, c := range p.columns {
		if c.of().Field == field {
			columns = append(columns, c)
		}
	}
	return columns
}

func (p *Preparation) together(of []prepared, table data.Batch) (data.Array, error) {
	rows, width, at, first := -1, 0, 0, ""
	for _, c := range of {
		width += c.width()
	}
	to := cells{stride: width}
	for _, c := range of {
		columns := make([]data.Array, len(c.of().taken()))
		for i, name := range c.of().taken() {
			column, err := p.column(table.Fields, name)
			if err != nil {
				return data.Array{}, fmt.Errorf("%w (it was fitted as a %s)", err, c.of().As)
			}
			if err := c.of().takes(name, column); err != nil {
				return data.Array{}, err
			}
			if rows < 0 {
				rows, first = column.Dims[0], name
				size, ok := arrays.Size(append([]int{rows, width}, c.of().Dims...)...)
				if !ok {
					return data.Array{}, fmt.Errorf("field %q has %d numbers for each of %d examples, expected at most %d in all", c.of().Field, width, rows, arrays.MostElements)
				}
				if c.integers() {
					to.classes = make([]int32, size)
				} else {
					to.numbers = make([]float32, size)
				}
			}
			if column.Dims[0] != rows {
				return data.Array{}, fmt.Errorf("column %q has %d examples, but column %q has %d", name, column.Dims[0], first, rows)
			}
			columns[i] = column
		}
		if err := c.convert(columns, to.from(at)); err != nil {
			if len(c.of().Dims) > 0 {
				err = fmt.Errorf("of the values of all examples %w", err)
			}
			return data.Array{}, fmt.Errorf("column %q: %w", c.of().title(), err)
		}
		at += c.width()
	}
	a := data.Array{Flat: to.numbers, Dims: slices.Concat([]int{rows}, of[0].of().Dims, []int{width})}
	if to.classes != nil {
		a.Flat = to.classes
	}
	if width == 1 && (of[0].label() || of[0].integers()) && of[0].of().As != asTokens {
		a.Dims = a.Dims[:len(a.Dims)-1]
	}
	return a, nil
}

func rowError(i int, format string, args ...any) error {
	return fmt.Errorf("row %d: "+format, append([]any{i + 1}, args...)...)
}

// Classes returns the classes of a field of labels or integers, by index; [UnknownOwn] has the next one. For labels of
// several columns it returns their names.
func (p *Preparation) Classes(field string) ([]string, error) {
	of, err := p.columnsOf(field)
	if err == nil && of[0].of().As == asFlag {
		return p.Names(field)
	}
	var names []string
	if err == nil {
		c, ok := of[0].(classed)
		if ok && len(of) == 1 && of[0].integers() {
			names = slices.Clone(c.classNames())
		} else {
			err = fmt.Errorf("field %q holds %s, expected the class numbers of one column", field, of[0].of().As)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tables: preparation: classes: %w", err)
	}
	return names, nil
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

func (p *Preparation) columnsOf(field string) ([]prepared, error) {
	if p == nil {
		p = &Preparation{}
	}
	of := p.in(field)
	if of == nil {
		return nil, fmt.Errorf("it makes no field %q; there are %q", field, p.fieldNames())
	}
	return of, nil
}
