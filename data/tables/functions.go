package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Function converts columns by a function of the program to float32 columns in a field [n, …]. Other items may name the
// columns, too. The preparation's JSON has the Name alone: read it by [Functions].
type Function struct {
	Name string
	// Columns are names, at least one.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Of takes the texts of one row's Columns, "" if missing, and returns the same number of finite numbers for each row.
	// It must be safe for concurrent use.
	Of func(row []string) ([]float32, error)
}

// Functions are by the Name of [Function].
type Functions map[string]func(row []string) ([]float32, error)

// Unmarshal decodes the JSON of a preparation with exactly these functions.
func (f Functions) Unmarshal(text []byte) (*Preparation, error) {
	p := new(Preparation)
	used, err := p.read(text, f)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !used[name] {
			return nil, fmt.Errorf("tables: preparation: functions: the preparation has no function %q; there are %s", name, listed.Some(slices.Sorted(maps.Keys(used))))
		}
	}
	return p, nil
}

const asFunction = "function"

func (f Function) rule() ([]string, string, error) {
	if f.Name == "" || len(f.Columns) == 0 || f.Of == nil {
		return nil, "", fmt.Errorf("the Name is %q and the Columns are %q: expected a name, at least one column, and Of", f.Name, f.Columns)
	}
	return f.Columns, cmp.Or(f.Field, "x"), nil
}

func (f Function) fit(names []string, columns []data.Array) ([]prepared, error) {
	c := &function{source{Columns: slices.Clone(names), Field: cmp.Or(f.Field, "x"), As: asFunction}, f.Name, 0, f.Of}
	err := c.each(columns, func(_ int, values []float32) error {
		c.Width = cmp.Or(c.Width, len(values))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("columns %q: %w", names, err)
	}
	return []prepared{c}, nil
}

type function struct {
	source
	Name  string `json:"name"`
	Width int    `json:"width"`
	f     func(row []string) ([]float32, error)
}

func (*function) shares() bool { return true }
func (c *function) width() int { return c.Width }

func (c *function) names() []string {
	names := make([]string, c.Width)
	for i := range names {
		if names[i] = c.Name; c.Width > 1 {
			names[i] += " " + strconv.Itoa(i+1)
		}
	}
	return names
}

func (c *function) check() error {
	switch {
	case c.Name == "" || c.Width < 1 || c.Width > mostWide:
		return fmt.Errorf("the function %q gives %d numbers, expected a name, and 1 to %d", c.Name, c.Width, mostWide)
	case c.f == nil:
		return fmt.Errorf("the function %q is code of the program that made the preparation: read it with that function, by tables.Functions{%q: …}.Unmarshal", c.Name, c.Name)
	}
	return nil
}

func (c *function) each(columns []data.Array, take func(row int, values []float32) error) error {
	texts := make([][]string, len(columns))
	for k, column := range columns {
		var err error
		if texts[k], err = textsOf(column); err != nil {
			return err
		}
	}
	for i := range columns[0].Size() {
		row := make([]string, len(texts))
		for k := range texts {
			row[k] = texts[k][i]
		}
		values, err := c.f(row)
		if err == nil && (len(values) == 0 || c.Width > 0 && len(values) != c.Width) {
			err = fmt.Errorf("it gives %d numbers, expected %d, as for the training data", len(values), max(c.Width, 1))
		}
		if err == nil && slices.ContainsFunc(values, func(v float32) bool { return !isFinite(float64(v)) }) {
			err = fmt.Errorf("it gives %v, expected finite numbers", values)
		}
		if err == nil {
			err = take(i, values)
		}
		if err != nil {
			return rowError(i, "function %q of %q: %w", c.Name, row, err)
		}
	}
	return nil
}

func (c *function) convert(columns []data.Array, to cells) error {
	return c.each(columns, func(row int, values []float32) error {
		copy(to.numbers[row*to.stride:], values)
		return nil
	})
}
