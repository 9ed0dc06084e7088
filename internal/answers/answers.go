// Package answers writes a model's answers row by row, for the command and the server.
package answers

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Column has an answer of each row: one value of JSON, or CSV cells below its header.
type Column struct {
	Name   string
	Header []string
	JSON   func(row int) any
	Cells  func(row int) []any
}

// Columns returns the columns of a model's answers (flaxlike.Model.Answer). classes has the class names of the outputs
// that have some: such an output o is in the arrays o_probability and o_class. NaN and infinities are the texts of a
// run's records: NaN, Infinity, -Infinity.
func Columns(outputs map[string]data.Array, classes map[string][]string) (columns []Column) {
	of := map[string]bool{}
	for name := range outputs {
		of[name] = true
	}
	for name := range classes {
		delete(of, name+probability)
		delete(of, name+class)
		of[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if names, ok := classes[name]; ok {
			columns = append(columns, ofClasses(name, outputs[name+probability], outputs[name+class], names)...)
		} else {
			columns = append(columns, values(name, outputs[name]))
		}
	}
	return columns
}

const probability, class = "_probability", "_class"

// NotFinite names, for each row, a NaN or an infinity in its answers; nil for none.
func NotFinite(outputs map[string]data.Array) (rows []string) {
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		a := outputs[name]
		v := reflect.ValueOf(a.Flat)
		for i := range v.Len() {
			text, not := special(v.Index(i))
			if !not {
				continue
			}
			if rows == nil {
				rows = make([]string, a.Len())
			}
			if row := i / (v.Len() / a.Len()); rows[row] == "" {
				rows[row] = fmt.Sprintf("the output %q has %s", name, text)
			}
		}
	}
	return rows
}

func special(v reflect.Value) (text string, ok bool) {
	if !v.CanFloat() || v.Float()-v.Float() == 0 {
		return "", false
	}
	return map[bool]string{math.IsInf(v.Float(), 1): "Infinity", math.IsInf(v.Float(), -1): "-Infinity", math.IsNaN(v.Float()): "NaN"}[true], true
}

func value(v reflect.Value) any {
	if text, ok := special(v); ok {
		return text
	}
	return v.Interface()
}

func values(name string, a data.Array) Column {
	size := a.Size() / max(1, a.Len())
	row := func(i int) reflect.Value { return reflect.ValueOf(a.Flat).Slice(i*size, (i+1)*size) }
	c := Column{Name: name}
	for k := range size {
		c.Header = append(c.Header, fmt.Sprintf("%s_%d", name, k))
	}
	c.Cells = func(i int) []any {
		cells := make([]any, 0, size)
		for k := range size {
			cells = append(cells, value(row(i).Index(k)))
		}
		return cells
	}
	c.JSON = func(i int) any { return c.Cells(i) }
	return c
}

func ofClasses(name string, probabilities, chosen data.Array, names []string) []Column {
	p, c := values(name+probability, probabilities), values(name+class, chosen)
	if len(probabilities.Dims) > 2 { // one for each position
		return []Column{p, c}
	}
	width := len(p.Header)
	if width == 1 && len(names) == 2 { // the probability of class 1
		names = names[1:]
	}
	list := p.JSON
	for k, of := range names {
		p.Header[k] = p.Name + "_" + of
	}
	p.JSON = func(i int) any {
		row, by := reflect.ValueOf(list(i)), map[string]any{}
		for k, of := range names {
			by[of] = row.Index(k).Interface()
		}
		return by
	}
	if chosen.Size() == chosen.Len() { // one class
		c.Header = []string{c.Name}
		one := c.Cells
		c.JSON = func(i int) any { return one(i)[0] }
		return []Column{p, c}
	}
	each := c.Cells
	is := func(i, k int) bool { // the texts of absent classes are empty
		v := reflect.ValueOf(each(i)[k])
		return !v.IsZero()
	}
	for k, of := range names {
		c.Header[k] = c.Name + "_" + of
	}
	c.JSON = func(i int) any {
		labels := []string{}
		for k, of := range names {
			if is(i, k) {
				labels = append(labels, of)
			}
		}
		return labels
	}
	c.Cells = func(i int) (cells []any) {
		for k := range names {
			cells = append(cells, map[bool]int{true: 1}[is(i, k)])
		}
		return cells
	}
	return []Column{p, c}
}

// Blank returns the columns of a row without answers: null in JSON, empty cells.
func Blank(columns []Column) []Column {
	blank := slices.Clone(columns)
	for i, c := range columns {
		blank[i].JSON = func(int) any { return nil }
		blank[i].Cells = func(int) []any { return slices.Repeat([]any{""}, len(c.Header)) }
	}
	return blank
}

func Object(columns []Column, row int) map[string]any {
	object := map[string]any{}
	for _, c := range columns {
		object[c.Name] = c.JSON(row)
	}
	return object
}
