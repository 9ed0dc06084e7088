package tables

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Columns is one of [Numbers], [Categories], [Dates], [Hashed], [Crossed], [Texts], [Terms], [Function], [Labels] and
// [Missing].
type Columns interface {
	rule() (columns []string, field string, err error)
	fit(names []string, columns []data.Array) ([]prepared, error)
}

// Missing are texts, like "NA", of a missing value in any column, besides "".
type Missing []string

func (Missing) rule() (columns []string, field string, err error) { return nil, "", nil }

func (Missing) fit([]string, []data.Array) ([]prepared, error) {
	return nil, errors.New("tables: Missing is for all columns")
}

// Labels converts targets, or other columns for training alone, like weights. One column becomes int32 [n], the class
// index. Several columns of 0 and 1 or bools are multi-label targets: float32 [n, columns], with their names as
// classes.
type Labels struct {
	// Columns are names, at least one.
	Columns []string
	// Field is the field's name, "y" if "".
	Field string
	// Classes are a single column's, as in [Categories].
	Classes []string
	// Numbers keeps numbers: float32 [n] for one column, [n, columns] for several.
	Numbers bool
	// Scale and Log, the logarithm of 1 + label before it, scale numbers for the loss. A flaxlike.Model answers in
	// the labels' units.
	Scale Scale
	Log   bool
}

// Fill replaces a missing value. The zero Fill refuses it.
type Fill int

const (
	noFill   Fill = iota
	FillMean      // of the training data
	FillMedian
	FillMostFrequent // mode; the least of several
	FillValue
	// FillForward is for Numbers: of the rows before in the same table. Map a set in order, before its
	// batches. A flaxlike.Model takes it for windows of a series alone. To fill before windows use series.Past.
	FillForward
)

// Preparation converts a table with missing values, texts and numbers into a model's input. Save it with the model, as
// JSON. It is safe for concurrent use. The table has one field [n] per column, or [n, rows] of series.Windows. Other
// fields are ignored. A missing value is "", NaN, or one of [Missing].
type Preparation struct {
	columns []prepared
	missing []string
}

const (
	mostOneHot = 1 << 12
	mostWide   = 1 << 16
)

// Fit determines classes, fill values and scales from training data. Results equal those of scikit-learn and pandas.
func Fit(training *data.Set, columns ...Columns) (*Preparation, error) {
	p, err := fitPreparation(training, columns)
	if err != nil {
		return nil, fmt.Errorf("tables: fit preparation: %w", err)
	}
	return p, nil
}

func fitPreparation(training *data.Set, rules []Columns) (*Preparation, error) {
	if training == nil || training.Len() == 0 {
		return nil, errors.New("the set has no examples")
	}
	if training.Mapped() {
		return nil, errors.New("the set has functions of MapBatches, whose outputs it does not know: call this before MapBatches")
	}
	fields := training.Fields()
	named, alone, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	rest := -1
	p := &Preparation{}
	for i, r := range rules {
		if r == nil {
			return nil, fmt.Errorf("columns %d of %d are nil", i+1, len(rules))
		}
		if missing, ok := r.(Missing); ok {
			if len(missing) == 0 || p.missing != nil {
				return nil, errors.New("tables.Missing appears twice, or names no text")
			}
			p.missing = slices.Clone(missing)
			continue
		}
		names, field, err := r.rule()
		if err != nil {
			return nil, fmt.Errorf("%T: %w", r, err)
		}
		for k, name := range names {
			if alone[name] && !shares(r) || slices.Contains(names[:k], name) {
				hint := ""
				if next := "next " + name; slices.ContainsFunc(fields, func(f data.Field) bool { return f.Name == next }) {
					hint = fmt.Sprintf("; did you mean %q, the rows after the windows, for the labels?", next)
				}
				return nil, fmt.Errorf("column %q is named twice%s", name, hint)
			}
			named[name], alone[name] = true, alone[name] || !shares(r)
		}
		if l, ok := r.(Labels); ok {
			if labels[field] {
				return nil, fmt.Errorf("%T of %q: the field %q already has labels: give these another Field", l, names, field)
			}
			labels[field] = true
		}
		if len(names) == 0 {
			if rest >= 0 {
				return nil, fmt.Errorf("%T and %T both name no columns; only one can take all remaining columns", rules[rest], r)
			}
			rest = i
		}
	}
	if rest >= 0 && len(fields) > 1 && !slices.ContainsFunc(rules, func(r Columns) bool { _, ok := r.(Labels); return ok }) {
		if _, ok := rules[rest].(Categories); ok {
			return nil, errors.New("Categories without Columns would also take the column of the labels: name the label column by tables.Labels, or set Columns")
		}
	}
	for _, r := range rules { // a misspelled column would fall to the rule for all others
		names, _, _ := r.rule()
		for _, name := range names {
			if _, err := columnOf(fields, name); err != nil {
				return nil, fmt.Errorf("%T: %w", r, err)
			}
		}
	}
	for i, r := range rules {
		if _, ok := r.(Missing); ok {
			continue
		}
		names, _, _ := r.rule()
		if i == rest {
			names = nil
			for _, f := range fields {
				if !named[f.Name] && f.Name != data.Mask {
					names = append(names, f.Name)
				}
			}
			if len(names) == 0 {
				return nil, fmt.Errorf("%T: the others take all columns", r)
			}
		}
		columns := make([]data.Array, len(names))
		for n, name := range names {
			var err error
			if columns[n], err = p.column(fields, name); err != nil {
				return nil, fmt.Errorf("%T: %w", r, err)
			}
		}
		fitted, err := r.fit(names, columns)
		for _, c := range fitted {
			for k, name := range c.of().taken() {
				column := columns[slices.Index(names, name)]
				if k == 0 && len(column.Dims) > 1 {
					c.of().Dims = slices.Clone(column.Dims[1:])
				}
				if err == nil {
					err = c.of().takes(name, column)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		p.columns = append(p.columns, fitted...)
	}
	return p, p.check()
}

func shares(r Columns) bool {
	switch r.(type) {
	case Crossed, Function:
		return true
	}
	return false
}

func (p *Preparation) column(fields []data.Field, name string) (data.Array, error) {
	a, err := columnOf(fields, name)
	texts, ok := a.Flat.([]string)
	if err != nil || !ok || len(p.missing) == 0 {
		return a, err
	}
	texts = slices.Clone(texts)
	for i, text := range texts {
		if slices.Contains(p.missing, strings.TrimSpace(text)) {
			texts[i] = ""
		}
	}
	return data.Array{Flat: texts, Dims: a.Dims}, nil
}

func columnOf(fields []data.Field, name string) (data.Array, error) {
	k := slices.IndexFunc(fields, func(f data.Field) bool { return f.Name == name })
	if k < 0 {
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		hint := ""
		if near := edits.Nearest(name, names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return data.Array{}, fmt.Errorf("the table has no column %q; there are %s%s", name, listed.Some(names), hint)
	}
	a := fields[k].Array
	err := arrays.Check(a.Flat, a.Dims)
	if err == nil && len(a.Dims) == 0 {
		err = errors.New("it has no axes, expected [n]")
	}
	if err == nil && len(a.Dims) > 2 {
		err = fmt.Errorf("it is %s %v, expected [n], or [n, rows] of series.Windows of a column [n]; to fill values before windows use "+
			"Forward of series.Past", a.DType(), a.Dims)
	}
	if err != nil {
		return a, fmt.Errorf("column %q: %w", name, err)
	}
	return a, nil
}

func (p *Preparation) check() error {
	if len(p.columns) == 0 {
		return errors.New("no columns: expected Numbers, Categories or Labels")
	}
	seen, labels := map[string]bool{}, map[string]bool{}
	for _, c := range p.columns {
		for _, name := range c.of().taken() {
			labels[name] = labels[name] || c.label()
		}
	}
	for _, c := range p.columns {
		of := c.of()
		for _, name := range of.taken() {
			if name == "" || seen[name] && !c.shares() {
				return fmt.Errorf("column %q appears twice, or has no name", name)
			}
			if labels[name] && !c.label() {
				return fmt.Errorf("column %q has labels, and %q, a %s, takes it: expected inputs without labels", name, of.title(), of.As)
			}
			seen[name] = seen[name] || !c.shares()
		}
		err := c.check()
		if of.Field == "" || of.Field == data.Mask || of.Field == data.Rows {
			err = fmt.Errorf("its field is %q, expected another name", of.Field)
		}
		if size, ok := arrays.Size(of.Dims...); !ok || size < 1 {
			err = fmt.Errorf("its dims are %v, expected positive ones", of.Dims)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", of.title(), err)
		}
	}
	for _, field := range p.fieldNames() {
		in, width := p.in(field), 0
		first := in[0].of()
		for i, c := range in {
			of := c.of()
			switch width += c.width(); {
			case i > 0 && (c.label() || in[0].label()) && (of.As != first.As || of.As == asClass):
				return fmt.Errorf("field %q has columns %q, %s, and %q, %s: expected labels in a field of their own", field, first.title(), first.As, of.title(), of.As)
			case !slices.Equal(of.Dims, first.Dims):
				return fmt.Errorf("field %q has columns %q, [n] and then %v, and %q, %v: expected the same, or fields of their own", field, first.title(), first.Dims, of.title(), of.Dims)
			case c.integers() != in[0].integers(), i > 0 && (of.As == asTokens || first.As == asTokens):
				return fmt.Errorf("field %q has columns %q, %s, and %q, %s: expected fields of their own for integers and for token ids", field, first.title(), first.As, of.title(), of.As)
			case width > mostWide:
				return fmt.Errorf("field %q has more than %d numbers for each example: %w", field, mostWide, data.ErrLimit)
			}
		}
	}
	return nil
}
