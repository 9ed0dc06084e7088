package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Categories converts columns of texts, integers or bools to one-hot columns in a float32 field [n, …], or to integers.
type Categories struct {
	// Columns are as in [Numbers], but empty requires a Labels item, and refuses columns whose ten or more values all
	// differ, like ids.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Integers encodes the class as int32: in a field [n] named like the column, or together in Field, [n, columns].
	Integers bool
	// Classes are in order. Empty means those of the training data, sorted; by value if all are integers.
	Classes []string
	// Fill replaces missing values: FillMostFrequent, or FillValue with Value, then a class even if the training data
	// lack it.
	Fill    Fill
	Value   string
	Unknown Unknown
	// Rare classes, with fewer training examples than this number, or than RareShare of them, become unknown ones,
	// with UnknownOwn or, if set, UnknownZeros.
	Rare      int
	RareShare float64
}

// Unknown encodes an unknown class. With the zero Unknown it is an error.
type Unknown int

const (
	unknownRefused Unknown = iota
	UnknownOwn             // an extra class after the others
	UnknownZeros           // 0 in all one-hot columns; not for Integers
)

func (c Categories) rule() ([]string, string, error) {
	switch {
	case c.Fill != noFill && c.Fill != FillMostFrequent && c.Fill != FillValue || c.Unknown < unknownRefused || c.Unknown > UnknownZeros:
		return nil, "", fmt.Errorf("the Fill is %d and the Unknown %d: expected 0, FillMostFrequent or FillValue, and one of the constants of package tables", c.Fill, c.Unknown)
	case (c.Value != "") != (c.Fill == FillValue):
		return nil, "", fmt.Errorf("the Value is %q and the Fill %d: expected a text with tables.FillValue, and no text with another Fill", c.Value, c.Fill)
	case c.Rare < 0 || !(c.RareShare >= 0 && c.RareShare < 1):
		return nil, "", fmt.Errorf("the Rare is %d and the RareShare %v: expected a number of examples, and a share of less than 1", c.Rare, c.RareShare)
	case (c.Rare > 0 || c.RareShare > 0) && c.Classes != nil:
		return nil, "", errors.New("both Classes and Rare are set: expected one of them")
	case c.Integers && c.Unknown == UnknownZeros:
		return nil, "", errors.New("Unknown is UnknownZeros, but Integers has no columns to be 0: use UnknownOwn")
	}
	return c.Columns, cmp.Or(c.Field, "x"), nil
}

const allDifferent = 10

func (c Categories) fit(names []string, columns []data.Array) ([]prepared, error) {
	return eachColumn(names, columns, c.fitColumn)
}

func (c Categories) fitColumn(name string, column data.Array) (prepared, error) {
	if c.Unknown == unknownRefused && (c.Rare > 0 || c.RareShare > 0) {
		c.Unknown = UnknownOwn
	}
	p := &category{source: source{Column: name, Field: cmp.Or(c.Field, "x"), As: asOneHot}, Unknown: unknowns[c.Unknown]}
	if c.Integers {
		p.Field, p.As = cmp.Or(c.Field, name), asInteger
	}
	texts, first, err := p.fitClasses(column, c.Classes, c.Unknown != unknownRefused)
	if err != nil {
		return nil, err
	}
	if len(c.Columns) == 0 && c.Classes == nil && len(texts) >= allDifferent && len(p.Classes) == len(texts) {
		return nil, fmt.Errorf("all its %d values differ, as those of ids and dates, so they carry no information about other examples: drop the column, name it in Categories.Columns, or use Dates or Hashed",
			len(texts))
	}
	switch {
	case c.Fill == noFill && first >= 0:
		return nil, rowError(first, "the value is missing: set Categories.Fill, or leave such examples out (Set.Where)")
	case c.Fill == FillMostFrequent:
		if len(texts) == 0 {
			return nil, errors.New("all values are missing, so none can be computed to fill in: leave the column out, or use FillValue")
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
	return p, c.dropRare(p, texts, column.Dims[0])
}

func (c Categories) dropRare(p *category, texts []string, rows int) error {
	if c.Rare == 0 && c.RareShare == 0 {
		return nil
	}
	count := map[string]int{p.FillClass: rows - len(texts)}
	for _, text := range texts {
		count[text]++
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(class string) bool {
		return count[class] < c.Rare || float64(count[class]) < c.RareShare*float64(rows)
	})
	if len(p.Classes) == 0 {
		return errors.New("all its classes are rare: leave the column out, or set a lower Categories.Rare")
	}
	return nil
}

type classList struct {
	Classes []string `json:"classes,omitempty"`
	number  map[string]int32
	value   map[float64]string // a number's first class
}

func (c *classList) fitClasses(column data.Array, given []string, more bool) (texts []string, first int, err error) {
	all, err := textsOf(column)
	if err != nil {
		return nil, 0, err
	}
	first = -1
	for i, text := range all {
		switch {
		case text != "":
			texts = append(texts, text)
			if given != nil && !more && !slices.Contains(given, text) {
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

func (c *classList) index(as string) error {
	switch {
	case len(c.Classes) == 0:
		return fmt.Errorf("0 classes in a %s", as)
	case as == asOneHot && len(c.Classes) > mostOneHot:
		return fmt.Errorf("%d classes, expected at most %d as columns of 0 and 1: set Categories.Integers or Rare, use Hashed, or leave it out: %w", len(c.Classes), mostOneHot, data.ErrLimit)
	case len(c.Classes) >= math.MaxInt32:
		return fmt.Errorf("%d classes: %w", len(c.Classes), data.ErrLimit)
	}
	c.number, c.value = make(map[string]int32, len(c.Classes)), map[float64]string{}
	for i, class := range c.Classes {
		if _, twice := c.number[class]; twice || strings.TrimSpace(class) != class || class == "" {
			return fmt.Errorf("the class %q is listed twice, is empty, or has spaces around it", class)
		}
		c.number[class] = int32(i)
		if v, err := arrays.ParseFloat(class, 64); err == nil && c.value[v] == "" {
			c.value[v] = class
		}
	}
	return nil
}

func (c *classList) unknown(row int, text, hint string) error {
	return rowError(row, "%s is not a class of the training data: expected one of %d: %s%s", quoted(text), len(c.Classes), listed.Some(c.Classes), hint)
}

type category struct {
	source
	classList
	FillClass string `json:"fill_class,omitempty"`
	Unknown   string `json:"unknown,omitempty"`
}

var unknowns = []string{unknownRefused: "", UnknownOwn: "own", UnknownZeros: "zeros"}

func (c *category) integers() bool { return c.As == asInteger }

func (c *category) width() int {
	switch {
	case c.integers():
		return 1
	case c.Unknown == unknowns[UnknownOwn]:
		return len(c.Classes) + 1
	}
	return len(c.Classes)
}

func (c *category) names() []string {
	if c.integers() {
		return []string{c.title()}
	}
	names := make([]string, 0, c.width())
	for _, class := range c.Classes {
		names = append(names, c.title()+"="+class)
	}
	if c.Unknown == unknowns[UnknownOwn] {
		names = append(names, c.title()+" unknown")
	}
	return names
}

func (c *category) check() error {
	if err := c.index(c.As); err != nil {
		return err
	}
	if !slices.Contains(unknowns, c.Unknown) || c.Unknown == unknowns[UnknownZeros] && c.integers() {
		return fmt.Errorf("unknown classes are %q, expected one of %q, and no zeros for an integer", c.Unknown, unknowns)
	}
	if _, known := c.number[c.FillClass]; c.FillClass != "" && !known && c.Unknown == "" {
		return fmt.Errorf("the class to fill in, %q, is not one of the classes", c.FillClass)
	}
	return nil
}

func (c *category) convert(columns []data.Array, to cells) error {
	if err := c.onTexts(columns); err != nil {
		return err
	}
	texts, err := crossed(columns)
	for i, text := range texts {
		if len(columns) == 1 {
			text = c.sameValue(text, isTexts(columns[0]))
		}
		text = cmp.Or(text, c.FillClass)
		n, known := c.number[text]
		switch {
		case known:
		case text == "":
			return rowError(i, "the value is missing: set Categories.Fill, and fit the preparation again")
		case c.Unknown == unknowns[UnknownOwn]:
			n = int32(len(c.Classes))
		case c.Unknown == unknowns[UnknownZeros]:
			continue
		default:
			rule := "Categories"
			if c.shares() {
				rule = "Crossed"
			}
			return c.unknown(i, text, "; to accept other classes, set "+rule+".Unknown, and fit the preparation again")
		}
		to.class(i, n)
	}
	return err
}

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.0)?$`)

// sameValue returns the class of a number or truth value, as 17.0 for 17, or its text. In a table of texts 17 and 17.0
// are one too, for pandas writes integers so next to missing ones, but 1.1 and 1.10 are two.
func (c *category) sameValue(text string, isText bool) string {
	if _, known := c.number[text]; known {
		return text
	}
	if text == "true" || text == "false" {
		if at := slices.IndexFunc(c.Classes, func(class string) bool { return strings.EqualFold(class, text) }); at >= 0 {
			return c.Classes[at]
		}
		return text
	}
	if isText && !wholeNumber.MatchString(text) {
		return text
	}
	v, err := arrays.ParseFloat(text, 64)
	class := c.value[v]
	if err != nil || class == "" || math.Abs(v) >= 1<<53 || isText && !wholeNumber.MatchString(class) { // larger integers share a float64
		return text
	}
	return class
}

func (c *category) shares() bool { return len(c.Columns) > 0 }

type classed interface{ classNames() []string }

func (c *classList) classNames() []string { return c.Classes }
