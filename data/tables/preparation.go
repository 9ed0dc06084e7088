package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Columns is one of [Numbers], [Categories], [Labels] and [Missing].
type Columns interface {
	rule() (columns []string, field string, err error)
	fit(name string, column data.Array) (prepared, error)
}

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

// Categories converts columns of texts, integers or bools to one-hot columns in a float32 field [n, …], or to integers.
type Categories struct {
	// Columns are as in [Numbers], but empty requires a Labels item, and refuses columns of ten or more rows whose
	// values all differ, such as ids.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Integers encodes the class as int32, for an embedding: in a field [n] named like the column, or together in
	// Field, [n, columns].
	Integers bool
	// Classes are in order. Empty means those of the training data, sorted; by value if all are integers.
	Classes []string
	// Fill replaces missing values: FillMostFrequent, or FillValue with Value, then a class even if the training data
	// lack it.
	Fill    Fill
	Value   string
	Unknown Unknown
}

// Missing are texts, such as "NA", of a missing value in any column, besides "".
type Missing []string

func (Missing) rule() (columns []string, field string, err error) { return nil, "", nil }

func (Missing) fit(string, data.Array) (prepared, error) {
	return prepared{}, errors.New("tables: Missing is for all columns")
}

// Labels converts targets, or other columns for training alone, such as weights. One column becomes int32 [n], the
// class index. Several columns of 0 and 1 or bools are multi-label targets: float32 [n, columns], with their names as
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
	// Scale and Log, the logarithm of 1 + label before it, scale numbers for the loss. A flaxlike.Model answers, and
	// computes its metrics, in the labels' units.
	Scale Scale
	Log   bool
}

// Fill replaces a missing value. With the zero Fill it is an error.
type Fill int

const (
	noFill   Fill = iota
	FillMean      // of the training data
	FillMedian
	FillMostFrequent // mode; the least of several
	FillValue
)

// Scale scales numbers. The zero Scale leaves them. A column that is constant in the training data becomes 0.
type Scale int

const (
	noScale  Scale = iota
	Standard       // mean 0, standard deviation 1
	MinMax         // training minimum 0, maximum 1; no clipping
)

// Unknown encodes an unknown class. With the zero Unknown it is an error.
type Unknown int

const (
	unknownRefused Unknown = iota
	UnknownOwn             // an extra class after the others
	UnknownZeros           // 0 in all one-hot columns; not for Integers
)

// Preparation converts a table with missing values, texts and numbers into a model's input. Save it with the model,
// as JSON. It is safe for concurrent use. The table is a [data.Set] with one field [n] per column. Other fields are
// ignored. A missing value is "", NaN, or one of [Missing].
type Preparation struct {
	columns []prepared
	missing []string
}

const (
	mostOneHot = 1 << 12
	mostWide   = 1 << 16
)

// Fit determines classes, fill values and scales from training data. Results equal those of scikit-learn's
// StandardScaler, MinMaxScaler and SimpleImputer.
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
	named, labels := map[string]bool{}, map[string]bool{}
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
		for _, name := range names {
			if named[name] {
				return nil, fmt.Errorf("column %q is named twice", name)
			}
			named[name] = true
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
		for _, name := range names {
			column, err := p.column(fields, name)
			if err != nil {
				return nil, fmt.Errorf("%T: %w", r, err)
			}
			one, err := r.fit(name, column)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", name, err)
			}
			p.columns = append(p.columns, one)
		}
	}
	return p, p.check()
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
	if len(a.Dims) != 1 {
		return a, fmt.Errorf("column %q is %s %v, expected one value for each example, [n]", name, a.DType(), a.Dims)
	}
	if err := arrays.Check(a.Flat, a.Dims); err != nil {
		return a, fmt.Errorf("column %q: %w", name, err)
	}
	return a, nil
}

const (
	asNumber  = "number"
	asOneHot  = "one-hot"
	asInteger = "integer"
	asClass   = "class label"
	asTarget  = "number label"
	asFlag    = "0 or 1 label"
)

var kinds = []string{asNumber, asOneHot, asInteger, asClass, asTarget, asFlag, asScaled, asLog}

func (p *Preparation) check() error {
	if len(p.columns) == 0 {
		return errors.New("no columns: expected Numbers, Categories or Labels")
	}
	seen := map[string]bool{}
	for i := range p.columns {
		c := &p.columns[i]
		if seen[c.Column] || c.Column == "" {
			return fmt.Errorf("column %q appears twice, or has no name", c.Column)
		}
		seen[c.Column] = true
		if err := c.check(); err != nil {
			return fmt.Errorf("column %q: %w", c.Column, err)
		}
	}
	for _, field := range p.fieldNames() {
		of, width := p.of(field), 0
		for i, c := range of {
			switch width += c.width(); {
			case i > 0 && (c.label() || of[0].label()) && (c.As != of[0].As || c.As == asClass):
				return fmt.Errorf("field %q has columns %q, %s, and %q, %s: expected labels in a field of their own", field, of[0].Column, of[0].As, c.Column, c.As)
			case c.integers() != of[0].integers():
				return fmt.Errorf("field %q has columns %q, %s, and %q, %s: expected fields of their own for integers", field, of[0].Column, of[0].As, c.Column, c.As)
			case width > mostWide:
				return fmt.Errorf("field %q has more than %d numbers for each example: %w", field, mostWide, data.ErrLimit)
			}
		}
	}
	return nil
}

func (c *prepared) check() error {
	classes := c.As == asOneHot || c.integers()
	switch {
	case !slices.Contains(kinds, c.As):
		return fmt.Errorf("its As is %q, expected one of %q", c.As, kinds)
	case c.Field == "" || c.Field == data.Mask || c.Field == data.Rows:
		return fmt.Errorf("its field is %q, expected another name", c.Field)
	case classes && len(c.Classes) == 0, !classes && len(c.Classes) > 0:
		return fmt.Errorf("%d classes in a %s", len(c.Classes), c.As)
	case c.As == asOneHot && len(c.Classes) > mostOneHot:
		return fmt.Errorf("%d classes, expected at most %d as columns of 0 and 1: set Categories.Integers, or leave it out: %w", len(c.Classes), mostOneHot, data.ErrLimit)
	case len(c.Classes) >= math.MaxInt32:
		return fmt.Errorf("%d classes: %w", len(c.Classes), data.ErrLimit)
	case !classes && !(math.Abs(c.Shift) <= math.MaxFloat64 && math.Abs(c.Scale) <= math.MaxFloat64 && c.Scale != 0):
		return fmt.Errorf("the shift %v and the scale %v: expected finite numbers, and no scale of 0", c.Shift, c.Scale)
	case c.Fill != nil && !(math.Abs(*c.Fill) <= math.MaxFloat64):
		return fmt.Errorf("the value to fill in is %v, expected a finite number", *c.Fill)
	case classes && (c.Fill != nil || c.Indicator || c.Shift != 0 || c.Scale != 0), !classes && (c.FillClass != "" || c.Unknown != ""),
		c.label() && (c.Fill != nil || c.FillClass != "" || c.Unknown != "" || c.Indicator):
		return fmt.Errorf("it has a setting that a %s does not support", c.As)
	case !slices.Contains(unknowns, c.Unknown), c.Unknown == unknowns[UnknownZeros] && c.As == asInteger:
		return fmt.Errorf("unknown classes are %q, expected one of %q, and no zeros for an integer", c.Unknown, unknowns)
	case c.Indicator && c.Fill == nil:
		return errors.New("an indicator without a value to fill in: set Numbers.Fill")
	}
	c.number = make(map[string]int32, len(c.Classes))
	for i, class := range c.Classes {
		if _, twice := c.number[class]; twice || strings.TrimSpace(class) != class || class == "" {
			return fmt.Errorf("the class %q is listed twice, is empty, or has spaces around it", class)
		}
		c.number[class] = int32(i)
	}
	if _, known := c.number[c.FillClass]; c.FillClass != "" && !known {
		return fmt.Errorf("the class to fill in, %q, is not one of the classes", c.FillClass)
	}
	return nil
}
